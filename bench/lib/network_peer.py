# SPDX-License-Identifier: Apache-2.0
"""The far side of the network bench: a name server that knows one address, and a web server that sends
many bytes. Prints a line when it listens. usage: network_peer.py ADDRESS BYTES"""

import os
import socket
import struct
import sys
import threading

ADDRESS, BYTES = sys.argv[1], int(sys.argv[2])


def names():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("0.0.0.0", 53))
    while True:
        question, peer = sock.recvfrom(512)
        end = question.index(b"\0", 12) + 5
        kind = struct.unpack_from("!H", question, end - 4)[0]
        answer = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton(ADDRESS) if kind == 1 else b""
        head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, int(kind == 1), 0, 0)
        sock.sendto(head + question[12:end] + answer, peer)


def send(stream, body):
    with stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        received = b""
        while b"\r\n\r\n" not in received:
            data = stream.recv(65536)
            if not data:
                return
            received += data
        if received.startswith(b"GET /pings "):
            data = received.split(b"\r\n\r\n", 1)[1]
            while data or (data := stream.recv(64)):
                stream.sendall(data)
                data = b""
            return
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % BYTES)
        offset = 0
        while offset < BYTES:
            offset += os.sendfile(stream.fileno(), body, offset, BYTES - offset)


def serve(port, body):
    server = socket.create_server(("0.0.0.0", port), backlog=128)
    while True:
        threading.Thread(target=send, args=(server.accept()[0], body), daemon=True).start()


def main():
    body = os.memfd_create("body")
    os.truncate(body, BYTES)
    for work, arguments in ((names, ()), (serve, (80, body)), (serve, (8000, body))):
        threading.Thread(target=work, args=arguments, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


main()
