"""What clients add to a call: headers, query parameters, a log-in, a deadline."""

from faces import over_grpc, over_http


def test_headers_are_taken(face, memory):
    headers = {"x-request-id": "17", "authorization": "Bearer token", "traceparent": "00-0-0-00"}
    face.register("r", memory, headers=headers)
    assert face.regions("r", headers=headers) == {"r": (0, 5000)}
    face.unregister("r", headers=headers)
    assert face.regions(headers=headers) == {}


@over_http
def test_query_parameters_are_ignored(face, memory):
    query = {"name": "other", "list": ["1", "two words", "/../&=?"], "x": ""}
    face.register("r", memory, query_params=query)
    assert face.regions("r", query_params=query) == {"r": (0, 5000)}
    assert face.regions(query_params=query) == {"r": (0, 5000)}
    face.unregister("r", query_params=query)
    assert face.regions() == {}


def test_basic_auth_of_the_clients_plugin_is_tolerated(face, memory):
    face.log_in("ada", "s3cret:with a colon")
    try:
        face.register("r", memory)
        assert face.regions("r") == {"r": (0, 5000)}
        with face.refusal("NOT_FOUND", r"Unable to find cuda shared memory region: 'x'$"):
            face.regions("x")
        face.unregister("r")
        assert face.regions() == {}
    finally:
        face.log_out()


@over_grpc
def test_a_deadline_that_is_long_enough_changes_nothing(face, memory):
    face.register("r", memory, client_timeout=60)
    assert face.regions("r", client_timeout=60) == {"r": (0, 5000)}
    face.unregister(client_timeout=60)
    assert face.regions() == {}
