"""Fixture of sentence-level translators, of which every family is trained once."""

import pytest


@pytest.fixture(scope="session")
def sentence_level_checkpoint(tmp_path_factory):
    """Gives the folder of a tiny trained translator by the name of its family, made when it is first asked for."""
    from sentence_level_translators import FAMILIES

    families, folders = {family.name: family for family in FAMILIES}, {}

    def folder(name):
        if name not in folders:
            folders[name] = families[name].save(tmp_path_factory.mktemp("plain") / name)
        return folders[name]

    return folder
