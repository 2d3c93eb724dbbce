import { Code, ConnectError } from '@connectrpc/connect'
import type { toMessage } from './sandbox-message.ts'

/** Event for watchers of the node. */
export type NodeEvent =
  | { case: 'started'; value: ReturnType<typeof toMessage> }
  | { case: 'pausing'; value: { sandboxId: string } }
  | { case: 'ended'; value: { sandboxId: string; reason: string; generation: number } }
  | { case: 'paused'; value: { sandboxId: string } }

/** Publishes events to all followers. Events between `follow` and the first read are not lost. */
export function createEvents(onPublish: (event: NodeEvent) => void = () => {}) {
  const followers = new Set<ReadableStreamDefaultController<NodeEvent>>()
  const lose = (follower: ReadableStreamDefaultController<NodeEvent>) => {
    if (followers.delete(follower)) {
      follower.error(new ConnectError('connection lost', Code.Unavailable))
    }
  }
  return {
    get followers() {
      return followers.size
    },
    publish(event: NodeEvent) {
      onPublish(event)
      for (const follower of followers) follower.enqueue(event)
    },
    drop() {
      for (const follower of followers) lose(follower)
    },
    follow(signal: AbortSignal): AsyncIterable<NodeEvent> {
      return new ReadableStream<NodeEvent>({
        start(controller) {
          followers.add(controller)
          signal.addEventListener('abort', () => lose(controller))
        },
      })
    },
  }
}
