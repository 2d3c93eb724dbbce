import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { Fault } from '@atoll/kit/fault'

/** Receives apt's progress, 0 to 1, from its status channel. */
export type AptProgress = (fraction: number) => void

/** Runs apt-get unattended. Throws a fault with its output when it fails; otherwise the output is dropped. */
export async function aptGet(args: readonly string[], progress: AptProgress): Promise<void> {
  const child = spawn(
    'env',
    [
      'DEBIAN_FRONTEND=noninteractive',
      'LC_ALL=C.UTF-8',
      'apt-get',
      '--quiet=2',
      '--option=DPkg::Lock::Timeout=300',
      '--option=APT::Status-Fd=3',
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  )
  const output: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk))
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk))
  const status = child.stdio[3]
  if (status && 'read' in status) {
    createInterface({ input: status }).on('line', (line) => {
      const fraction = parseAptStatus(line)
      if (fraction !== undefined) progress(fraction)
    })
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw aptFault(args, code, Buffer.concat(output).toString('utf8'))
}

/** Parses a status line. Downloads count as the first half, unpacking and configuring as the second. */
export function parseAptStatus(line: string): number | undefined {
  const [kind, , percent] = line.split(':')
  const half = Number(percent) / 200
  if (!Number.isFinite(half)) return undefined
  if (kind === 'dlstatus') return half
  return kind === 'pmstatus' ? 0.5 + half : undefined
}

export function aptFault(args: readonly string[], code: number | null, output: string): Fault {
  const lastLines = output.trim().split('\n').slice(-25).join('\n')
  const unreachable =
    /Could not (resolve|connect)|Temporary failure|Network is unreachable|Connection (failed|timed out)/
  const hint = unreachable.test(output)
    ? 'The Debian mirror cannot be reached. Check the network and the apt sources, then run this again.'
    : `apt-get ${args.join(' ')} failed (exit ${code}).`
  return new Fault('unavailable', 'host_packages', `${lastLines}\n${hint}`)
}
