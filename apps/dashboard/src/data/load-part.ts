import { reconnectDelayMs } from '../model/reconnect.ts'

const maxAttempts = 5

/**
 * Loads a part of the page that is loaded when it is needed. Tries again: a laptop that changes its network cuts off what
 * its browser loads.
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await load()
    } catch (error) {
      if (attempt + 1 >= maxAttempts) throw error
      await new Promise((resolve) => setTimeout(resolve, reconnectDelayMs(attempt)))
    }
  }
}
