"""What every test starts with. The services run already: test/clients/python.test.ts starts them and runs pytest."""

import json
import os
import urllib.request
from types import SimpleNamespace

import pytest
from faces import FACES, Face
from memory import Exporter


SERVICES = {
    name: SimpleNamespace(**addresses) for name, addresses in json.loads(os.environ["TEST_SERVICES"]).items()
}


@pytest.fixture(scope="session")
def service():
    """Addresses of the service, `host:port` each. It and this process see two devices."""
    return SERVICES["usual"]


@pytest.fixture(scope="session", params=FACES)
def session_face(request, service):
    face = Face(request.param, service)
    yield face
    face.close()


@pytest.fixture
def face(session_face):
    """Each of the four clients in turn, with nothing registered before and after."""
    assert session_face.regions() == {}
    yield session_face
    session_face.unregister()
    assert session_face.regions() == {}


@pytest.fixture(params=FACES)
def face_of(request):
    """Each of the four clients in turn, of a service that was started in another way."""
    faces = []

    def connect(name):
        faces.append(Face(request.param, SERVICES[name]))
        return faces[-1]

    yield connect
    for face in faces:
        face.close()


@pytest.fixture(scope="session")
def allocate():
    """Starts an exporter of so many bytes."""
    command = json.loads(os.environ["TEST_ALLOCATE_COMMAND"])
    exporters = []

    def start(byte_size):
        exporters.append(Exporter(command, byte_size))
        return exporters[-1]

    yield start
    for exporter in exporters:
        exporter.close()


@pytest.fixture(scope="session")
def memory(allocate):
    """5,000 bytes of another process."""
    return allocate(5000)


@pytest.fixture
def contents(service):
    """Reads a window of a region as the service sees it."""

    def read(name, offset, byte_size):
        query = f"offset={offset}&byte_size={byte_size}"
        with urllib.request.urlopen(f"http://{service.http}/v1/regions/{name}/contents?{query}") as answer:
            return answer.read()

    return read


@pytest.fixture
def put_contents(service):
    """Writes into a region through the service."""

    def write(name, offset, data):
        query = f"offset={offset}&byte_size={len(data)}"
        url = f"http://{service.http}/v1/regions/{name}/contents?{query}"
        with urllib.request.urlopen(urllib.request.Request(url, data, method="PUT")) as answer:
            assert answer.status == 200

    return write
