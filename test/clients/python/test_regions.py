"""Registering, listing and unregistering through the official clients."""

from faces import over_asyncio, over_grpc


def test_registers_lists_and_unregisters_one_region(face, memory):
    face.register("input0", memory)
    assert face.regions() == {"input0": (0, 5000)}
    assert face.regions("input0") == {"input0": (0, 5000)}
    face.unregister("input0")
    assert face.regions() == {}


def test_unregisters_one_of_two_names_of_a_handle(face, memory):
    face.register("one", memory, byte_size=64)
    face.register("two", memory, byte_size=5000)
    face.unregister("one")
    assert face.regions() == {"two": (0, 5000)}


def test_unregisters_everything_and_again_when_nothing_is_left(face, memory):
    for name in ("a", "b", "c"):
        face.register(name, memory)
    face.unregister()
    face.unregister()
    assert face.regions() == {}


def test_unregister_of_an_unknown_name_does_nothing(face, memory):
    face.register("kept", memory)
    face.unregister("nobody")
    assert face.regions() == {"kept": (0, 5000)}


def test_the_system_shared_memory_calls_that_clients_make_first_succeed(face, memory):
    face.register("kept", memory)
    face.call("unregister_system_shared_memory")
    face.call("unregister_system_shared_memory", "kept")
    status = face.call("get_system_shared_memory_status")
    assert (status if face.is_http else dict(status.regions)) in ([], {})
    assert face.regions() == {"kept": (0, 5000)}


def test_a_thousand_regions(face, memory):
    sizes = {f"region-{i:04}": 1 + i for i in range(1000)}
    for name, byte_size in sizes.items():
        face.register(name, memory, byte_size=byte_size)
    regions = face.regions()
    assert regions == {name: (0, byte_size) for name, byte_size in sizes.items()}
    if face.is_http:
        assert list(regions) == sorted(sizes)
    for i in range(0, 1000, 2):
        face.unregister(f"region-{i:04}")
    assert len(face.regions()) == 500
    face.unregister()
    assert face.regions() == {}


@over_asyncio
def test_one_of_ten_registers_of_a_name_at_once_wins(face, memory):
    register = ("register_cuda_shared_memory", "raced", memory.raw_handle, 0, 64)
    outcomes = [error and error.message() for error in face.at_once([register] * 10)]
    assert sorted(outcomes, key=str) == [None] + ["shared memory region 'raced' already in manager"] * 9
    assert face.regions() == {"raced": (0, 64)}


def test_the_service_is_live_and_ready_and_says_what_it_is(face):
    assert face.call("is_server_live") is True
    assert face.call("is_server_ready") is True
    metadata = face.call("get_server_metadata")
    name, extensions = (
        (metadata["name"], metadata["extensions"]) if face.is_http else (metadata.name, metadata.extensions)
    )
    assert name == "cudashm"
    assert "cuda_shared_memory" in extensions


@over_grpc
def test_status_as_json_holds_names_and_sizes(face, memory):
    face.register("input0", memory)
    status = face.call("get_cuda_shared_memory_status", "input0", as_json=True)
    # 64-bit numbers are texts in protobuf's JSON, and zeros are left out.
    assert status == {"regions": {"input0": {"name": "input0", "byte_size": "5000"}}}
