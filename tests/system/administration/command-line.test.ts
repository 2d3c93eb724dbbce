/** The command line from a build to its removal: templates, files, logs, metrics, ports and secrets on a real platform. */
import assert from 'node:assert/strict'
import {
  chmod,
  lstat,
  mkdir,
  mkdtempDisposable,
  readdir,
  readFile,
  readlink,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { once } from 'node:events'
import { get } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { tryRun } from '@atoll/kit/run'
import { waitFor } from '@atoll/kit/wait'
import { atoll, install } from '../installation.ts'
import type { Installation } from '../installation.ts'

let installation: Installation
let sandboxId: string

before(async () => {
  installation = await install({ ATOLL_BASE_MEMORY_MB: '256' })
})
after(() => installation[Symbol.asyncDispose]())

function cli(...args: readonly string[]) {
  return tryRun(atoll, args, { env: installation.env })
}

function cliWithInput(input: string, ...args: readonly string[]) {
  return tryRun(atoll, args, { env: installation.env, input })
}

async function succeed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(...args)
  assert.equal(code, 0, `atoll ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** Node.js does not resolve names below localhost, unlike browsers and curl. */
async function getByHostName(url: string): Promise<string> {
  const { host, port } = new URL(url)
  const sent = get({ host: '127.0.0.1', port, headers: { host } })
  const [reply]: IncomingMessage[] = await once(sent, 'response')
  return reply ? text(reply) : ''
}

const size = ['--cpu', '1', '--memory', '256']

test('a template is built from a directory, listed, shown and tagged', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-cli-build-'))
  const context = folder.path
  await mkdir(join(context, 'site/deep'), { recursive: true })
  await writeFile(join(context, 'site/index.html'), 'from the template')
  await writeFile(join(context, 'site/deep/notes.txt'), 'deep')
  await writeFile(join(context, 'site/secret.env'), 'never copied')
  await writeFile(join(context, 'run me.sh'), '#!/bin/sh\necho ran')
  await chmod(join(context, 'run me.sh'), 0o755)
  await symlink('index.html', join(context, 'site/link'))
  await writeFile(join(context, '.dockerignore'), '**/*.env\n')
  const dockerfile = [
    'ARG ROOT=/srv',
    'FROM base',
    'ARG ROOT',
    'ENV GREETING="hello $ROOT" \\',
    "    PRICE='5 $'",
    'COPY --chown=user site ${ROOT}/site/',
    'COPY ["run me.sh", "/usr/local/bin/run-me"]',
    'RUN echo "$GREETING, $PRICE" > /etc/greeting && printf "\\033]0;title\\007 unsafe\\n"',
    'WORKDIR ${ROOT}/site',
    'USER user',
  ].join('\n')
  await writeFile(join(context, 'Dockerfile'), dockerfile)
  const arguments_ = [
    'template',
    'build',
    context,
    '--name',
    'site:v1',
    '--tag',
    'default',
    ...size,
    '--json',
  ]
  const built = await cli(...arguments_)
  assert.equal(built.code, 0, built.stderr)
  const { templateID, buildID, status } = JSON.parse(built.stdout)
  assert.equal(status, 'ready')
  assert.match(built.stderr, /100 % uploading for COPY/)
  assert.ok(built.stderr.includes(String.raw`\x1b]0;title\x07 unsafe`), built.stderr)
  assert.ok(!built.stderr.includes('\x1b'))

  const again = await cli(...arguments_.with(2, context))
  assert.equal(again.code, 0, again.stderr)
  assert.doesNotMatch(again.stderr, /uploading/)

  const listed = await succeed('template', 'list')
  assert.match(listed, new RegExp(`^${templateID} +\\S*site +ready +1 +256 MiB`, 'm'))
  const shown = await succeed('template', 'show', 'site')
  assert.match(shown, new RegExp(`^${buildID} +ready`, 'm'))
  assert.match(await succeed('template', 'logs', 'site', buildID), /COPY/)
  await succeed('template', 'tag', 'site:v1', 'stable')
  const tags: { tag: string }[] = JSON.parse(await succeed('template', 'tag', 'site', '--json'))
  assert.deepEqual(tags.map(({ tag }) => tag).toSorted(), ['default', 'stable', 'v1'])
  await succeed('template', 'tag', '--delete', 'site', 'v1')
  sandboxId = (await succeed('sandbox', 'create', 'site:stable', '--timeout', '30m')).trim()
  const script =
    'cat /etc/greeting; pwd; ls -A; cat link; whoami; stat -c %U deep; run-me; stat -c %U:%a /usr/local/bin/run-me'
  assert.deepEqual((await succeed('sandbox', 'exec', sandboxId, script)).trim().split('\n'), [
    'hello /srv, 5 $',
    '/srv/site',
    'deep',
    'index.html',
    'link',
    'from the templateuser',
    'user',
    'ran',
    'root:755',
  ])
})

test('a build that fails names the step and exits with 1', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-cli-build-'))
  await writeFile(
    join(folder.path, 'Dockerfile'),
    'FROM base\nRUN echo before\nRUN echo why >&2; exit 7\n',
  )
  const failed = await cli('template', 'build', folder.path, '--name', 'broken', ...size)
  assert.deepEqual([failed.code, failed.stdout], [1, ''])
  assert.match(failed.stderr, /\bwhy\b/)
  assert.match(failed.stderr, /error: The build failed at step 4 of 6, RUN echo why >&2; exit 7: /)
  const logs = await cli('template', 'logs', 'broken')
  assert.equal(logs.code, 1)
  assert.match(logs.stdout, /why/)
  await succeed('template', 'rm', 'broken')
})

test('bad input of a build is refused before anything is created', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-cli-build-'))
  const refused = async (dockerfile: string, message: RegExp) => {
    await writeFile(join(folder.path, 'Dockerfile'), dockerfile)
    const { code, stderr } = await cli('template', 'build', folder.path, '--name', 'never')
    assert.deepEqual([code, message.test(stderr)], [2, true], stderr)
  }
  await refused('FROM base\nCOPY ../etc/passwd /\n', /Line 2 .*outside of the build directory/)
  await refused('FROM base\nCOPY missing /\n', /Line 2 .*missing is not in/)
  assert.equal((await cli('template', 'show', 'never')).code, 1)
})

test('a template is created without a Dockerfile', async () => {
  await succeed('template', 'create', 'marked', '--run', 'echo marked > /etc/mark', ...size)
  const id = (await succeed('sandbox', 'create', 'marked')).trim()
  assert.equal(await succeed('sandbox', 'exec', id, 'cat /etc/mark; whoami'), 'marked\nuser\n')
  await succeed('sandbox', 'kill', id)
  await succeed('template', 'rm', 'marked')
  assert.doesNotMatch(await succeed('template', 'list'), /marked/)
})

test('files and folders are copied in and out', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-cli-copy-'))
  const at = (...parts: string[]) => join(folder.path, ...parts)
  await mkdir(at('project/src/deep'), { recursive: true })
  const binary = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7) % 256))
  await writeFile(at('project/data.bin'), binary)
  await writeFile(at('project/src/deep/a file'), 'text')
  await writeFile(at('project/tool'), '#!/bin/sh\necho tool')
  await chmod(at('project/tool'), 0o755)
  await symlink('src/deep', at('project/inner'))
  const longName = 'long'.repeat(40)
  await writeFile(at('project', longName), 'long')

  await succeed('sandbox', 'cp', at('project'), `${sandboxId}:/home/user/project`)
  const script =
    'cd ~/project; ./tool; readlink inner; cat "inner/a file"; stat -c %U tool; wc -c < data.bin'
  const seen = await succeed('sandbox', 'exec', sandboxId, script)
  assert.equal(seen, 'tool\nsrc/deep\ntextuser\n3000000\n')
  await mkdir(at('out'))
  await succeed('sandbox', 'cp', `${sandboxId}:/home/user/project`, at('out'))
  assert.deepEqual(await readFile(at('out/project/data.bin')), binary)
  assert.equal(await readFile(at('out/project', longName), 'utf8'), 'long')
  assert.equal(await readlink(at('out/project/inner')), 'src/deep')
  assert.equal((await lstat(at('out/project/tool'))).mode & 0o777, 0o755)

  await succeed('sandbox', 'cp', `${sandboxId}:project/data.bin`, at('copy.bin'))
  assert.deepEqual(await readFile(at('copy.bin')), binary)
  await succeed('sandbox', 'cp', at('copy.bin'), `${sandboxId}:/home/user/project`)
  const piped = await cliWithInput('from stdin', 'sandbox', 'cp', '-', `${sandboxId}:new/piped.txt`)
  assert.equal(piped.code, 0, piped.stderr)
  assert.equal(await succeed('sandbox', 'cp', `${sandboxId}:new/piped.txt`, '-'), 'from stdin')
  const listing = await succeed('sandbox', 'exec', sandboxId, 'ls /tmp -A; ls ~/project')
  assert.doesNotMatch(listing, /atoll-cp/)
  assert.match(listing, /copy\.bin/)

  for (const [source, target] of [
    [at('missing'), `${sandboxId}:x`],
    [`${sandboxId}:project`, at('no/such/folder')],
    [`${sandboxId}:project`, '-'],
  ] as const) {
    assert.equal((await cli('sandbox', 'cp', source, target)).code, 2)
  }
  assert.equal((await cli('sandbox', 'cp', `${sandboxId}:absent`, at('absent'))).code, 1)
})

test('a hostile folder and a hostile tar cannot write outside of the target', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'atoll-cli-hostile-'))
  const at = (...parts: string[]) => join(folder.path, ...parts)
  const prepare = [
    'mkdir -p ~/trap/sub; cd ~/trap',
    'ln -s /etc away; ln -s ../../.. up; ln -s sub inside; ln -s inside/../.. sly',
    'mkfifo pipe; echo x > "$(printf "evil\\033[2Jname")"',
  ].join('\n')
  await succeed('sandbox', 'exec', sandboxId, prepare)
  const plain = await cli('sandbox', 'cp', `${sandboxId}:trap`, at('trap'))
  assert.equal(plain.code, 0, plain.stderr)
  assert.deepEqual((await readdir(at('trap'))).toSorted(), ['evil\x1b[2Jname', 'inside', 'sub'])
  assert.match(plain.stderr, /skipped the link away/)
  assert.match(plain.stderr, /skipped pipe|skipped \.\/pipe/)
  assert.ok(!plain.stderr.includes('\x1b'))

  // The sandbox answers with an archive of its own making, by the name of the folder.
  const attacks = [
    'add("../escaped")',
    `add("${at('absolute')}")`,
    'add("a", b"", type=tarfile.SYMTYPE, linkname=".."); add("a/../../escaped")',
    'add("link", b"", type=tarfile.SYMTYPE, linkname=".."); add("link/escaped")',
    `add("hard", b"", type=tarfile.LNKTYPE, linkname="${at('victim')}")`,
    'sys.stdout.buffer.write(b"x" * 5000)',
  ]
  const large = 'add("zeros", b"0" * 5000000)'
  const fakeTar = [
    "cat > /usr/local/bin/tar <<'END'",
    '#!/usr/bin/python3',
    'import io, os, sys, tarfile',
    'out = tarfile.open(fileobj=sys.stdout.buffer, mode="w|")',
    'def add(name, data=b"evil", **more):',
    '    info = tarfile.TarInfo(name); info.size = len(data)',
    '    for key, value in more.items(): setattr(info, key, value)',
    '    out.addfile(info, io.BytesIO(data))',
    'name = os.path.basename(os.getcwd())',
    ...[...attacks, large].map((attack, index) => `if name == "attack${index}": ${attack}`),
    'out.close()',
    'END',
    'chmod 755 /usr/local/bin/tar; cd /home/user; mkdir attack{0..6}',
  ]
  await succeed('sandbox', 'exec', '--user', 'root', sandboxId, fakeTar.join('\n'))
  await writeFile(at('victim'), 'untouched')
  for (const [index, attack] of attacks.entries()) {
    const copied = await cli('sandbox', 'cp', `${sandboxId}:attack${index}`, folder.path)
    assert.doesNotMatch(copied.stderr, /connection/)
    const names = (await readdir(folder.path)).filter((name) => !name.startsWith('attack'))
    assert.deepEqual(names.toSorted(), ['trap', 'victim'], attack)
    assert.equal(await readFile(at('victim'), 'utf8'), 'untouched')
    assert.equal((await lstat(at('victim'))).nlink, 1)
  }
  const source = `${sandboxId}:attack${attacks.length}`
  const stopped = await cli('sandbox', 'cp', '--max-size', '1M', source, folder.path)
  assert.equal(stopped.code, 1)
  assert.match(stopped.stderr, /more than 1048576 bytes/)
  await succeed('sandbox', 'exec', '--user', 'root', sandboxId, 'rm /usr/local/bin/tar')
})

test('ports, URLs, logs and metrics of a sandbox are shown', async () => {
  const serve = 'setsid python3 -m http.server 8123 --bind 0.0.0.0 >/dev/null 2>&1 </dev/null &'
  await succeed('sandbox', 'exec', sandboxId, serve)
  interface Port {
    readonly port: number
    readonly url: string
  }
  const found = await waitFor('the server to listen', async () => {
    const ports: Port[] = JSON.parse(await succeed('sandbox', 'ports', sandboxId, '--json'))
    return ports.find(({ port }) => port === 8123)
  })
  const { port } = new URL(installation.url)
  assert.equal(found.url, `http://8123-${sandboxId}.localhost:${port}/`)
  assert.equal(await succeed('sandbox', 'open', sandboxId, '8123'), `${found.url}\n`)
  assert.match(await getByHostName(found.url), /from the template/)
  assert.equal((await cli('sandbox', 'open', sandboxId, '70000')).code, 2)

  const logged = await waitFor('the log to have the server', async () => {
    const printed = await succeed('sandbox', 'logs', sandboxId, '--limit', '1000')
    return printed.includes('http.server') ? printed : undefined
  })
  assert.ok(!logged.includes('\x1b'))
  await waitFor('a sample', async () => {
    const samples: unknown[] = JSON.parse(await succeed('sandbox', 'metrics', sandboxId, '--json'))
    return samples.length > 0
  })
  assert.match(await succeed('sandbox', 'metrics', sandboxId), /^TIME .*\n.* % of 1 .* of 256 MB/)
  assert.equal((await cli('sandbox', 'logs', 'iaaaaaaaaaaaaaaaaaaaa')).code, 1)
})

test('secrets are stored, replaced, listed without values and deleted', async () => {
  const value = 'very-secret-value'
  const created = await cliWithInput(`${value}\n`, 'secret', 'create', 'api-key', '--json')
  assert.equal(created.code, 0, created.stderr)
  const updated = await cliWithInput('another', 'secret', 'update', 'api-key')
  assert.equal(updated.stdout, 'updated api-key to version 2\n')
  const listed = await succeed('secret', 'list')
  assert.match(listed, /api-key +2 /)
  assert.ok(![created.stdout, listed, installation.output()].join().includes(value))
  assert.equal((await cliWithInput('', 'secret', 'create', 'empty')).code, 2)
  await succeed('secret', 'rm', 'api-key')
  assert.equal((await cli('secret', 'rm', 'api-key')).code, 1)
})

test('a template is removed once its sandboxes are gone', async () => {
  const refused = await cli('template', 'rm', 'site')
  assert.equal(refused.code, 1)
  await succeed('sandbox', 'kill', sandboxId)
  assert.equal(await succeed('template', 'rm', 'site'), 'deleted site\n')
  assert.equal((await cli('template', 'show', 'site')).code, 1)
})
