import { runCli } from './cli.ts'

// A closed pipe (`atoll … | head`) exits with 128 + SIGPIPE, like other programs, and without a stack trace.
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
