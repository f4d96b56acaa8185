"""A Hub in a few lines: repositories in memory, with the endpoints by which huggingface_hub uploads and downloads."""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Repository:
    def __init__(self, type: str, private: bool) -> None:
        self.type, self.private = type, private
        self.files: dict[str, bytes] = {}
        self.commits: list[dict] = []  # title and paths of each

    @property
    def sha(self) -> str:
        return hashlib.sha1(str(len(self.commits)).encode()).hexdigest()


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
            name = "/".join(filter(None, (request.get("organization"), request["name"])))
            name = name if "/" in name else f"someone/{name}"
            is_private = request.get("private") or request.get("visibility") == "private"  # older and newer clients
            repository = Repository(request.get("type") or "model", bool(is_private))
            self.server.repositories.setdefault(name, repository)
            self._answer({"url": f"{self.server.address}/{name}", "name": name, "id": name})
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif match := re.fullmatch(r"/api/(?:models|datasets|spaces)/(.+?)/preupload/.+", self.path):
            files = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        elif match := re.fullmatch(r"/api/(?:models|datasets|spaces)/(.+?)/commit/.+", self.path):
            repository = self.server.repositories[match[1]]
            commit: dict = {"paths": []}
            for entry in map(json.loads, body.splitlines()):
                if entry["key"] == "header":
                    commit["title"] = entry["value"]["summary"]
                elif entry["key"] == "file":
                    repository.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
                    commit["paths"].append(entry["value"]["path"])
            repository.commits.append(commit)
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
        if match := re.fullmatch(r"/(?!api/)([^/]+/[^/]+)/resolve/[^/]+/(.+)", path):
            repository = self.server.repositories.get(match[1])
            if repository is None:
                return self._missing("RepoNotFound")
            if match[2] not in repository.files:
                return self._missing("EntryNotFound")
            content = repository.files[match[2]]
            etag = f'"{hashlib.sha1(content).hexdigest()}"'
            return self._answer(
                content, ETag=etag, X_Repo_Commit=repository.sha, Content_Type="application/octet-stream"
            )
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(/.*)?", path):
            repository = self.server.repositories.get(match[1])
            if repository is None:
                return self._missing("RepoNotFound")
            files = [{"rfilename": name} for name in repository.files]
            if "/tree/" in (match[2] or ""):
                tree = [
                    {"type": "file", "path": name, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
                    for name, content in repository.files.items()
                ]
                return self._answer(tree)
            return self._answer(
                {
                    "id": match[1],
                    "modelId": match[1],
                    "sha": repository.sha,
                    "siblings": files,
                    "tags": [],
                    "downloads": 0,
                    "likes": 0,
                    "private": False,
                }
            )
        return self._missing("EntryNotFound")

    do_HEAD = do_GET
