"""The command `gtransformer translate`."""

from .translate_options import TranslateOptions


def translate(options: TranslateOptions) -> int:
    """
    Translate files, pipes and corpora.

    Files keep their layout; only the text changes. Documents of a corpus (.jsonl[.gz|.xz], .parquet or a folder
    written by save_to_disk of the package datasets) get a `translation`. Repeat the command to continue an interrupted
    corpus.

    The command checks inputs and outputs before it loads the model, and reports files that fail. It writes outputs
    atomically, and replaces files only with --overwrite. The last line on standard error is a summary.

    \b
    Examples:
      gtransformer translate letter.docx --model Helsinki-NLP/opus-mt-en-de --output german/
      gtransformer translate report.txt --model outputs/mbart25 --splitter sentencex > bericht.txt
      gtransformer translate docs/*.md film.srt --model outputs/mbart25 --output german/ --skip_existing
      gtransformer translate talk.html --model outputs/mbart25 --output_format tmx --confidence > talk.tmx
      gtransformer translate test.jsonl.xz --model outputs/mbart25 --source_column en --output translated.jsonl
      man ls | col -bx | gtransformer translate --model outputs/mbart25 --format wrapped --tgt_lang de_DE

    \b
    Exit status:
      0    success
      1    a file or a record failed, or any warning with --fail_on_warning
      2    translation did not start: an option, the model, a language or the glossary is wrong
      130  interrupted by Ctrl-C
      143  terminated by SIGTERM
    """
    from .file_translation import translate_files

    return translate_files(options)
