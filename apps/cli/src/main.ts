import { runCli } from './cli.ts'

// A reader that has enough (`atoll … | head`) is no failure worth a stack trace: end as other programs do.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 128 + 13 : 1)
})

process.exitCode = await runCli(process.argv.slice(2), {
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  process,
})
