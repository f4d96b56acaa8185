import evaluate
from evaluate.utils import launch_gradio_widget


launch_gradio_widget(evaluate.load("your-name/document_bleu"))
