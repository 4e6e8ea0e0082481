"""Names of regions that clients use, and those they cannot use."""

import re

import pytest
from faces import over_grpc, over_http

ORDINARY = [
    "my region",
    "100%",
    "%41",
    "a%2541",
    "a%20b",
    "a+b",
    "a%2Fb",
    "a?b#c",
    "a;b,c=d&e",
    "'\"\\",
    "~user",
    "...",
    "入力テンソル",
    "caf\u00e9",
    "cafe\u0301",
    "\U0001f600",
    "__proto__",
    "constructor",
    "toString",
    "x" * 1024,
    "é" * 512,
]


def shortened(name):
    return name if len(name) <= 40 else f"{len(name)} characters"


@pytest.mark.parametrize("name", ORDINARY, ids=shortened)
def test_ordinary_names(face, memory, name):
    face.register(name, memory)
    assert face.regions() == {name: (0, 5000)}
    assert face.regions(name) == {name: (0, 5000)}
    face.unregister(name)
    with face.refusal("NOT_FOUND", r"Unable to find cuda shared memory region: "):
        face.regions(name)


def test_composed_and_decomposed_letters_are_two_names(face, memory):
    face.register("caf\u00e9", memory, byte_size=1)
    face.register("cafe\u0301", memory, byte_size=2)
    assert face.regions() == {"caf\u00e9": (0, 1), "cafe\u0301": (0, 2)}


SLASHES = pytest.mark.parametrize("name", ["a/b", "InceptionV3/Predictions/Softmax"])


@over_grpc
@SLASHES
def test_slashes_over_grpc(face, memory, name):
    face.register(name, memory)
    assert face.regions() == {name: (0, 5000)}
    face.unregister(name)
    assert face.regions() == {}


@over_http
@SLASHES
def test_slashes_over_http_are_left_alone_by_the_clients_and_make_another_path(face, memory, name):
    with face.refusal("NOT_FOUND", r"Not Found$"):
        face.register(name, memory)


@pytest.mark.parametrize("name", ["a\0b", "a\nb", "\x7f", "x" * 1025, "é" * 513], ids=shortened)
def test_refused_names(face, memory, name):
    with face.refusal("INVALID_ARGUMENT", r"failed to register shared memory region.*invalid args"):
        face.register(name, memory)
    assert face.regions() == {}


@over_grpc
def test_no_name_over_grpc(face, memory):
    with face.refusal("INVALID_ARGUMENT", r"failed to register shared memory region.*invalid args"):
        face.register("", memory)


@over_http
def test_no_name_over_http(face, memory):
    with face.refusal("NOT_FOUND", r"Not Found$"):
        face.register("", memory)


@pytest.mark.parametrize("session_face", ["http", "grpc", "grpc.aio"], indirect=True)
@pytest.mark.parametrize("name", [".", ".."])
def test_dots_are_refused(face, memory, name):
    face.register("kept", memory)
    with face.refusal("INVALID_ARGUMENT", r"failed to register shared memory region.*invalid args"):
        face.register(name, memory)
    for call in (face.regions, face.unregister):
        with face.refusal("INVALID_ARGUMENT", rf"'{re.escape(name)}' is not allowed as a region name"):
            call(name)
    assert face.regions() == {"kept": (0, 5000)}


# aiohttp folds the dots of a path before it sends it: the service gets a path that has lost the name.
@pytest.mark.parametrize("session_face", ["http.aio"], indirect=True)
@pytest.mark.parametrize(
    ("name", "code", "text"),
    [(".", "NOT_FOUND", "Not Found$"), ("..", "INVALID_ARGUMENT", "'region name' is necessary")],
)
def test_dots_that_the_client_folds_register_nothing(face, memory, name, code, text):
    with face.refusal(code, text):
        face.register(name, memory)
    assert face.regions() == {}
