"""A Hub in a few lines: repositories in memory, with the endpoints by which huggingface_hub uploads and downloads."""

import base64
import json
import re
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Repository:
    def __init__(self, private: bool) -> None:
        self.private = private
        self.files: dict[str, bytes] = {}
        self.commits: list[str] = []  # their titles

    @property
    def sha(self) -> str:
        return sha1(str(len(self.commits)).encode()).hexdigest()


class HubStandIn(ThreadingHTTPServer):
    """`repositories` says what has been uploaded."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, Repository] = {}

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: HubStandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *args) -> None:
        pass

    def _answer(self, content: dict | list | bytes, status: int = 200, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _missing(self, code: str) -> None:
        self._answer({"error": code}, 404, X_Error_Code=code)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length)) if length else b"".join(self._chunks())
        if self.path == "/api/repos/create":
            request = json.loads(body)
            name = f"{request['organization'] or 'someone'}/{request['name']}"
            self.server.repositories.setdefault(name, Repository(request.get("visibility") == "private"))
            self._answer({"url": f"{self.server.address}/{name}", "name": name, "id": name})
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif re.fullmatch(r"/api/models/.+/preupload/.+", self.path):
            paths = [file["path"] for file in json.loads(body)["files"]]
            self._answer({"files": [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in paths]})
        elif match := re.fullmatch(r"/api/models/(.+?)/commit/.+", self.path):
            repository = self.server.repositories[match[1]]
            for entry in map(json.loads, body.splitlines()):
                if entry["key"] == "header":
                    repository.commits.append(entry["value"]["summary"])
                elif entry["key"] == "file":
                    repository.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            address = f"{self.server.address}/{match[1]}/commit/{repository.sha}"
            self._answer({"success": True, "commitUrl": address, "commitOid": repository.sha})
        else:
            self._missing("EntryNotFound")

    def _chunks(self):
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/api/whoami-v2":
            return self._answer({"name": "someone", "type": "user", "orgs": [], "auth": {}})
        match = re.fullmatch(r"(?:/api/models)?/([^/]+/[^/]+)(/.*)?", path)
        repository = self.server.repositories.get(match[1]) if match else None
        if repository is None:
            return self._missing("RepoNotFound")
        place = match[2] or ""
        if file := re.fullmatch(r"/resolve/[^/]+/(.+)", place):
            content = repository.files.get(file[1])
            if content is None:
                return self._missing("EntryNotFound")
            headers = {"ETag": f'"{sha1(content).hexdigest()}"', "X_Repo_Commit": repository.sha}
            return self._answer(content, Content_Type="application/octet-stream", **headers)
        if place.startswith("/tree/"):
            return self._answer(
                [
                    {"type": "file", "path": name, "size": len(content), "oid": sha1(content).hexdigest()}
                    for name, content in repository.files.items()
                ]
            )
        files = [{"rfilename": name} for name in repository.files]
        self._answer({"id": match[1], "sha": repository.sha, "siblings": files})

    do_HEAD = do_GET
