import { Fault } from '@atoll/kit/fault'
import type { Access } from '../access.ts'
import { attach } from '../attach.ts'
import type { SandboxAddress } from '../attach.ts'
import { exitCodeOf } from '../exit-code.ts'

export interface Captured {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

const limitBytes = 4 * 1024 * 1024
const timeoutSeconds = 120

/** Runs a short program in a sandbox and collects its output, up to a limit. */
export async function capture(
  access: Access,
  address: SandboxAddress,
  [cmd = '', ...args]: readonly string[],
): Promise<Captured> {
  const pieces = { stdout: [] as Buffer[], stderr: [] as Buffer[] }
  let length = 0
  const stopped = new AbortController()
  const end = await attach(
    access,
    address,
    { process: { cmd, args }, stdin: false },
    {
      onStart: () => {},
      async onOutput(output) {
        if (output.case !== 'stdout' && output.case !== 'stderr') return
        length += output.value.length
        if (length > limitBytes) stopped.abort(tooLong(cmd))
        pieces[output.case].push(Buffer.from(output.value))
      },
    },
    { signal: stopped.signal, timeoutSeconds },
  )
  const [stdout, stderr] = [pieces.stdout, pieces.stderr].map((all) =>
    Buffer.concat(all).toString(),
  )
  return { exitCode: exitCodeOf(end), stdout: stdout ?? '', stderr: stderr ?? '' }
}

function tooLong(cmd: string): Fault {
  const message = `${cmd} in the sandbox printed more than 4 MiB and was stopped`
  return new Fault('exhausted', 'output_too_long', message)
}
