"""The command that downloads a corpus says where its files are."""

from train.paper_corpora import main as paper_corpora


def test_files_by_split(news_corpus, capsys):
    paper_corpora(["news"])
    files = {
        split: [f"{news_corpus}/concatenated_en2de_{split}_{side}.txt" for side in ("en", "de")]
        for split in ("train", "dev", "test")
    }
    assert capsys.readouterr().out.splitlines() == [" ".join([split, *files[split]]) for split in files]
