import { setTimeout } from 'node:timers/promises'

/** The edge answers 502 until the program in the sandbox listens on its port. */
export async function fetchWhenListening(url) {
  for (;;) {
    const response = await fetch(url)
    if (response.status !== 502) return response.text()
    await setTimeout(100)
  }
}
