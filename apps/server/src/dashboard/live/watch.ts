/**
 * Watches answers for a page: asks for them again and again, and sends the ones that differ from what the page has. The
 * page acknowledges each message before the next one, so a slow page gets fewer messages, never a queue of them.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { readAnswer } from './answers.ts'
import type { Answer, AnswerSource } from './answers.ts'
import type { Channel, ChannelPort } from './channel.ts'
import type { WatchRequest } from './messages.ts'

export interface WatchTarget extends AnswerSource {
  onKeyRefused(): void
}

export function openWatch(request: WatchRequest, port: ChannelPort, target: WatchTarget): Channel {
  let acknowledge = () => {}
  const awaitAcknowledgement = () =>
    new Promise<void>((resolve) => {
      acknowledge = resolve
      port.signal.addEventListener('abort', () => resolve(), { once: true })
    })
  watch(request, port, target, awaitAcknowledgement).catch(() => {
    // Only the end of the channel ends the loop.
  })
  return {
    control(message) {
      if ('ack' in message) acknowledge()
    },
  }
}

async function watch(
  { paths, everyMs }: WatchRequest,
  port: ChannelPort,
  target: WatchTarget,
  awaitAcknowledgement: () => Promise<void>,
): Promise<void> {
  const { signal } = port
  const tags = new Map(paths.map(({ path, tag }) => [path, tag]))
  for (;;) {
    if (port.isVisible()) {
      const changed: Record<string, Answer> = {}
      // One after the other: a page of many paths must not crowd out others.
      for (const path of tags.keys()) {
        const answer = await readAnswer(target, path, signal)
        if (answer.status === 401) return target.onKeyRefused()
        if (answer.tag === tags.get(path)) continue
        tags.set(path, answer.tag)
        changed[path] = answer
      }
      if (Object.keys(changed).length > 0) {
        const acknowledged = awaitAcknowledgement()
        port.send({ answers: changed })
        await acknowledged
      }
    }
    await sleep(everyMs, undefined, { signal })
  }
}
