"""Uploading, against a hub on this machine: what it is told, and one message for each thing that it refuses."""

import pytest

from draftboard.errors import UserError
from draftboard.publishing import upload
from draftboard.publishing.hub import check_repository

TOKEN = "hf_" + "x" * 34
FILES = {"README.md": b"---\ntags: [a]\n---\n\n# Board\n", "data/figures.parquet": b"PAR1"}


@pytest.fixture
def send(hub):
    def call(name="me/board", *, token=TOKEN, **how):
        return upload(FILES, name, message="a board", endpoint=hub.endpoint, token=token, **how)

    return call


def test_a_missing_repository_is_made_private_and_gets_one_commit(hub, send):
    done = send()
    assert [told["visibility"] for told in hub.created] == ["private"]
    assert [told["type"] for told in hub.created] == ["dataset"]
    (commit,) = hub.commits
    assert commit["files"] == FILES
    assert commit["header"]["summary"] == "a board"
    assert (done.created, done.private, done.pull_request) == (True, True, "")
    assert done.repository == f"{hub.endpoint}/datasets/me/board"
    assert done.commit.endswith("1" * 40)


def test_it_is_public_where_that_is_asked_for(hub, send):
    assert not send(public=True).private
    assert [told["visibility"] for told in hub.created] == ["public"]


def test_a_name_without_owner_is_ones_own(hub, send):
    send("board")
    assert (hub.created[0]["organization"], hub.created[0]["name"]) == ("me", "board")


@pytest.mark.parametrize("private", [True, False])
def test_a_repository_that_is_there_keeps_its_visibility(hub, send, private):
    hub.datasets["me/board"] = private
    done = send(public=True)
    assert (done.created, done.private, hub.created) == (False, private, [])
    assert len(hub.commits) == 1


def test_a_pull_request_is_opened_in_a_repository_that_is_there(hub, send):
    hub.datasets["me/board"] = False
    done = send(pull_request=True)
    assert "create_pr=1" in hub.commits[0]["path"]
    assert done.pull_request.endswith("/discussions/1")


def test_a_pull_request_needs_a_repository(hub, send):
    with pytest.raises(UserError, match="no dataset repository me/board that a pull request"):
        send(pull_request=True)
    assert hub.created == hub.commits == []


def test_a_repository_of_another_kind_is_refused(hub, send):
    hub.models.add("me/board")
    with pytest.raises(UserError, match="me/board is a model repository"):
        send()
    assert hub.created == hub.commits == []


def test_without_a_token_nothing_is_asked(hub, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    with pytest.raises(UserError, match="there is no Hugging Face token"):
        upload(FILES, "me/board", message="m", endpoint=hub.endpoint)
    assert hub.requests == []


def test_a_token_that_is_not_accepted(hub, send):
    with pytest.raises(UserError, match="does not accept the Hugging Face token") as caught:
        send(token="hf_wrong")
    assert "hf_wrong" not in str(caught.value)
    assert "hf auth login" in str(caught.value)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "does not let this token write"),
        (403, "may not write to me/board"),
        (404, "no dataset repository me/board"),
        (413, "HTTP 413"),
    ],
)
def test_what_the_hub_refuses_is_one_message(hub, send, status, told):
    hub.datasets["me/board"] = True
    hub.forbidden = status
    with pytest.raises(UserError, match=told):
        send()
    assert hub.commits == []


def test_a_hub_that_cannot_be_reached():
    with pytest.raises(UserError, match="cannot be reached, so nothing was published"):
        upload(FILES, "me/board", message="m", endpoint="http://127.0.0.1:9", token=TOKEN)


@pytest.mark.parametrize("name", ["a/b/c", "a b", "https://huggingface.co/datasets/a/b", "", "-x", "a/" + "n" * 100])
def test_what_cannot_be_a_repository_is_refused_before_anything_is_asked(name):
    with pytest.raises(UserError, match="cannot be a repository"):
        check_repository(name)


@pytest.mark.parametrize("name", ["me/board", "board", "datasets/me/board"])
def test_what_can_be_a_repository(name):
    assert check_repository(name) == name.removeprefix("datasets/")
