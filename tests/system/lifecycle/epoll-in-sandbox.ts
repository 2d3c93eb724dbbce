/**
 * Server to run inside a sandbox, with connections to itself in an epoll set. `/close` opens more connections and
 * closes them once all were found idle together. Other paths send through each open connection and wait for the events.
 * Responses contain what epoll has reported so far.
 */
export const epollSource = `
import json, os, select, socket
epoll = select.epoll()
local = socket.create_server(('127.0.0.1', 0))
public = socket.create_server(('0.0.0.0', int(os.environ['PORT'])))
pairs = {}
state = {'waits': 0, 'exchanges': 0, 'stale': []}

def connect():
    client = socket.create_connection(local.getsockname())
    server = local.accept()[0]
    edge = select.EPOLLET if len(pairs) % 2 else 0
    epoll.register(server, select.EPOLLIN | edge)
    pairs[server.fileno()] = (server, client)

def wait():
    events = [fd for fd, event in epoll.poll()]
    state['waits'] += 1
    for fd in events:
        if fd not in pairs and fd != public.fileno() and len(state['stale']) < 10:
            state['stale'].append(fd)
    return events

def exchange():
    missing = set(pairs)
    for server, client in pairs.values():
        client.send(b'x')
    while missing:
        for fd in missing.intersection(wait()):
            pairs[fd][0].recv(1)
            missing.remove(fd)
    state['exchanges'] += 1

def open_and_close():
    kept = list(pairs)
    for _ in range(6):
        connect()
    exchange()
    epoll.poll(0)
    for number, fd in enumerate(set(pairs).difference(kept)):
        server, client = pairs.pop(fd)
        # A set forgets what is removed from it, and what is closed.
        if number % 3:
            epoll.unregister(fd)
        server.close()
        client.close()

connect()
connect()
epoll.register(public, select.EPOLLIN)
print('listening', flush=True)
while True:
    if public.fileno() in wait():
        epoll.unregister(public)
        asker = public.accept()[0]
        path = asker.recv(65536).split(b' ')[1]
        open_and_close() if path == b'/close' else exchange()
        body = json.dumps(state).encode()
        asker.send(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) + body)
        asker.close()
        epoll.register(public, select.EPOLLIN)
`
