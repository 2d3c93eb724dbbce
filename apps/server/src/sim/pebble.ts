/** Pebble, the test server of Let's Encrypt: a real CA that speaks ACME, with a DNS server that tests fill. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'
import { createLocalCa, issueServerCertificate } from '../tls/local-ca.ts'

export interface Pebble extends AsyncDisposable {
  readonly directoryUrl: string
  /** Root certificate of the connection to the CA. */
  readonly caFile: string
  /** Port on which the CA asks for proofs over HTTP. All names resolve to 127.0.0.1. */
  readonly httpPort: number
  /** Program that publishes TXT records in the DNS server that the CA asks. */
  readonly hook: string
  /** Returns the root of the certificates that the CA issues, as PEM. */
  root(): Promise<string>
  /** Returns what the CA and its DNS server have printed. */
  output(): string
}

export async function startPebble(): Promise<Pebble> {
  const dir = await mkdtemp('/var/tmp/atoll-pebble-')
  const children: ChildProcess[] = []
  let output = ''
  const launch = (program: string, args: readonly string[]) => {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment })
    const keep = (chunk: Buffer) => void (output += chunk.toString())
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)
    children.push(child)
  }
  const stop = async () => {
    for (const child of children.filter(({ exitCode }) => exitCode === null)) {
      const exit = once(child, 'exit')
      child.kill('SIGKILL')
      await exit
    }
    await rm(dir, { recursive: true })
  }
  try {
    const programs = await unpackPrograms(dir)
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort(), freePort()])
    const [acme, management, httpPort, dns, records] = ports
    const ca = createLocalCa('localhost', new Date())
    const caFile = join(dir, 'ca.pem')
    await writeFile(caFile, ca.certificate)
    await writeConfiguration(dir, ca, { acme, management, httpPort })
    launch(join(programs, 'pebble-challtestsrv'), [
      ...['-dns01', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${records}`],
      ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''],
    ])
    launch(join(programs, 'pebble'), [
      ...['-config', join(dir, 'pebble.json'), '-dnsserver', `127.0.0.1:${dns}`, '-strict'],
    ])
    const hook = await writeHook(dir, records)
    const directoryUrl = `https://localhost:${acme}/dir`
    const fetchText = (url: string) => fetchWith(url, ca.certificate)
    await waitFor('Pebble to answer', () => fetchText(directoryUrl).then(Boolean, () => false))
    await waitFor('its DNS server to answer', () =>
      fetch(`http://127.0.0.1:${records}/`).then(Boolean, () => false),
    )
    return {
      ...{ directoryUrl, caFile, httpPort, hook },
      root: () => fetchText(`https://localhost:${management}/roots/0`),
      output: () => output,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Pebble validates without a pause, and rejects one nonce in five to see whether the client repeats its request. */
const environment = { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '20' }

/** Unpacks the package. Installing it would change the machine. */
async function unpackPrograms(dir: string): Promise<string> {
  const packageDir = join(dir, 'package')
  await mkdir(packageDir)
  await chmod(dir, 0o711)
  await chmod(packageDir, 0o777) // apt downloads as the user _apt
  const download = () =>
    run('apt-get', ['download', 'pebble'], { cwd: packageDir, timeoutMs: 120_000 })
  await download().catch(async () => {
    await run('apt-get', ['update'], { timeoutMs: 120_000 })
    await download()
  })
  const [name = ''] = await readdir(packageDir)
  await run('dpkg', ['--extract', join(packageDir, name), join(dir, 'programs')])
  return join(dir, 'programs/usr/bin')
}

async function writeConfiguration(
  dir: string,
  ca: Parameters<typeof issueServerCertificate>[0],
  ports: { readonly acme: number; readonly management: number; readonly httpPort: number },
): Promise<void> {
  const { cert, key } = issueServerCertificate(ca, new Date())
  const [certificate, privateKey] = [join(dir, 'cert.pem'), join(dir, 'key.pem')]
  await writeFile(certificate, cert)
  await writeFile(privateKey, key)
  const pebble = {
    listenAddress: `127.0.0.1:${ports.acme}`,
    managementListenAddress: `127.0.0.1:${ports.management}`,
    ...{ certificate, privateKey, httpPort: ports.httpPort, tlsPort: 1 },
    ...{ ocspResponderURL: '', externalAccountBindingRequired: false },
  }
  await writeFile(join(dir, 'pebble.json'), JSON.stringify({ pebble }))
}

async function writeHook(dir: string, port: number): Promise<string> {
  const hook = join(dir, 'hook')
  const program = `#!${process.execPath}
const [action, name, value] = process.argv.slice(2)
const path = action === 'add' ? 'set-txt' : 'clear-txt'
const body = JSON.stringify({ host: name + '.', value })
fetch('http://127.0.0.1:${port}/' + path, { method: 'POST', body }).then((reply) => {
  process.exitCode = reply.ok ? 0 : 1
})
`
  await writeFile(hook, program)
  await chmod(hook, 0o700)
  return hook
}

async function fetchWith(url: string, ca: string): Promise<string> {
  const request = get(url, { ca, agent: false })
  const [response] = await once(request, 'response')
  return text(response)
}
