"""The command `gtransformer translate`."""

from .translate_options import TranslateOptions


def translate(options: TranslateOptions) -> int:
    """
    Translate files, pipes and corpora.

    Text files and office documents keep everything but their text. Documents of a corpus (.jsonl[.gz|.xz], .parquet or
    a folder that save_to_disk of the package datasets has written) get a `translation`; a translation of theirs that
    was stopped is continued by the same command.

    Inputs and outputs are checked before the model is loaded. The command reports a file that cannot be read or
    translated and continues with the next. It writes every output atomically, and replaces none without
    --overwrite. The last line on standard error is a summary.

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
      0    everything was translated
      1    a file or a record failed or, with --fail_on_warning, there was a warning
      2    nothing was translated: an option, the model, a language or the glossary is wrong
      130  interrupted by Ctrl-C
      143  terminated by SIGTERM
    """
    from .file_translation import translate_files

    return translate_files(options)
