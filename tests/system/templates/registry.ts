/** Real image registry on loopback, with small images. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { run } from '@atoll/kit/run'
import { freePort } from '@atoll/kit/testing/free-port'
import { waitFor } from '@atoll/kit/wait'

export interface TestRegistry extends AsyncDisposable {
  /** Host and port, as `host:port`. */
  readonly host: string
  /** Pushes an image whose layers are folders, lowest first; returns its reference. */
  push(name: string, image: TestImage): Promise<string>
}

export interface TestImage {
  readonly layers: readonly string[]
  readonly env?: readonly string[]
}

export const credentials = { username: 'puller', password: 'pa"ss word' }

export async function startRegistry(): Promise<TestRegistry> {
  const dir = await mkdtemp('/var/tmp/atoll-registry-')
  const host = `127.0.0.1:${await freePort()}`
  const program = await unpackProgram(dir)
  await writeFile(join(dir, 'users'), await userLine())
  await writeFile(join(dir, 'config.yml'), configuration(dir, host))
  const child = spawn(program, ['serve', join(dir, 'config.yml')], { stdio: 'ignore' })
  await waitFor('the registry to answer', async () => {
    const reply = await fetch(`http://${host}/v2/`).catch(() => undefined)
    return reply?.status === 401
  })
  return {
    host,
    async push(name, image) {
      const layout = await mkdtemp(join(dir, 'image-'))
      await writeLayout(layout, image)
      const { username, password } = credentials
      await run('skopeo', [
        ...['copy', '--insecure-policy', '--dest-tls-verify=false'],
        ...[`--dest-creds=${username}:${password}`, `oci:${layout}:latest`],
        `docker://${host}/${name}`,
      ])
      return `${host}/${name}`
    },
    async [Symbol.asyncDispose]() {
      const exit = once(child, 'exit')
      child.kill('SIGKILL')
      await exit
      await rm(dir, { recursive: true })
    },
  }
}

/** Unpacks the registry program. Installing the package would start a service on the machine. */
async function unpackProgram(dir: string): Promise<string> {
  const packageDir = join(dir, 'package')
  await mkdir(packageDir)
  await run('chmod', ['777', packageDir]) // apt downloads as the user _apt
  const download = () =>
    run('apt-get', ['download', 'docker-registry'], { cwd: packageDir, timeoutMs: 120_000 })
  await download().catch(async () => {
    await run('apt-get', ['update'], { timeoutMs: 120_000 })
    await download()
  })
  const [name = ''] = await readdir(packageDir)
  await run('dpkg', ['--extract', join(packageDir, name), join(dir, 'program')])
  return join(dir, 'program/usr/bin/docker-registry')
}

async function userLine(): Promise<string> {
  const script = "print crypt($ARGV[0], '$2y$05$abcdefghijklmnopqrstuu')"
  const hash = await run('perl', ['-e', script, credentials.password])
  return `${credentials.username}:${hash}\n`
}

function configuration(dir: string, host: string): string {
  return `version: 0.1
log: { level: error }
storage: { filesystem: { rootdirectory: '${join(dir, 'store')}' } }
http: { addr: '${host}' }
auth: { htpasswd: { realm: test, path: '${join(dir, 'users')}' } }
`
}

/** Writes an OCI layout with one image. */
async function writeLayout(dir: string, { layers, env = [] }: TestImage): Promise<void> {
  const blobs = join(dir, 'blobs/sha256')
  await mkdir(blobs, { recursive: true })
  const writeBlob = async (content: Buffer) => {
    const hash = sha256(content)
    await writeFile(join(blobs, hash), content)
    return { digest: `sha256:${hash}`, size: content.length }
  }
  const diffIds: string[] = []
  const layerDescriptors = []
  for (const [position, folder] of layers.entries()) {
    const tar = join(dir, `${position}.tar`)
    await run('tar', ['--create', '--file', tar, '--directory', folder, '.'])
    const tarContent = await readFile(tar)
    diffIds.push(`sha256:${sha256(tarContent)}`)
    const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip'
    layerDescriptors.push({ mediaType, ...(await writeBlob(gzipSync(tarContent))) })
  }
  const config = {
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config: { Env: env },
    rootfs: { type: 'layers', diff_ids: diffIds },
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: {
      mediaType: 'application/vnd.oci.image.config.v1+json',
      ...(await writeBlob(Buffer.from(JSON.stringify(config)))),
    },
    layers: layerDescriptors,
  }
  const descriptor = await writeBlob(Buffer.from(JSON.stringify(manifest)))
  const annotations = { 'org.opencontainers.image.ref.name': 'latest' }
  const index = {
    schemaVersion: 2,
    manifests: [{ mediaType: manifest.mediaType, ...descriptor, annotations }],
  }
  await writeFile(join(dir, 'index.json'), JSON.stringify(index))
  await writeFile(join(dir, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
}

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Copies programs of this machine and their libraries into a folder: a minimal Debian. */
export async function createSmallSystem(
  folder: string,
  programs: readonly string[],
): Promise<void> {
  await mkdir(folder, { recursive: true })
  // arm64 has no lib64.
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    if (existsSync(`/${name}`)) await symlink(`usr/${name}`, join(folder, name))
  }
  for (const name of ['dev', 'etc', 'home', 'proc', 'root', 'sys', 'tmp', 'usr/bin']) {
    await mkdir(join(folder, name), { recursive: true })
  }
  await symlink('dash', join(folder, 'usr/bin/sh'))
  for (const [name, line] of Object.entries(accounts)) {
    await writeFile(join(folder, 'etc', name), `${line}\n`)
  }
  await run('cp', ['--archive', '/etc/login.defs', join(folder, 'etc')])
  const script = `
    for program; do
      ldd "$program" | grep -o '/[^ ]*'
      echo "$program"
    done | sort -u | while read -r path; do readlink -f "$path"; echo "$path"; done | sort -u
  `
  const list = await run('sh', ['-c', script, 'list', ...programs])
  const paths = list
    .trim()
    .split('\n')
    .map((path) => path.replace(/^\/(lib|lib64|bin|sbin)\//, '/usr/$1/'))
  for (const path of new Set(paths)) {
    await mkdir(join(folder, path, '..'), { recursive: true })
    await run('cp', ['--archive', path, join(folder, path)])
  }
}

const accounts = {
  passwd: 'root:x:0:0:root:/root:/bin/bash',
  group: 'root:x:0:',
  shadow: 'root:*:19000:0:99999:7:::',
  gshadow: 'root:*::',
}
