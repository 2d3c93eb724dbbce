import { signal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect } from 'preact/hooks'
import { loadPart } from '../data/load-part.ts'
import { Empty, Skeleton } from './status.tsx'
import { Button } from './controls.tsx'

/**
 * Loads a component when it is shown first. A file that is gone, after an upgrade of the server, asks for a reload. All places
 * share one signal: the component may arrive between the drawing of a place and its effects.
 */
export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  const part = signal<{ readonly Loaded: ComponentType<Props> } | 'failed' | undefined>(undefined)
  let isLoading = false
  const start = async () => {
    isLoading = true
    try {
      part.value = { Loaded: await loadPart(load) }
    } catch {
      part.value = 'failed'
      isLoading = false // the next place tries again
    }
  }
  return function Lazy(props: Props) {
    useEffect(() => {
      if (!isLoading) void start()
    }, [])
    if (part.value === 'failed') {
      return (
        <Empty title="This part of the page could not be loaded">
          <Button action={() => location.reload()}>Reload the page</Button>
        </Empty>
      )
    }
    if (!part.value) return <Skeleton />
    const { Loaded } = part.value
    return <Loaded {...props} />
  }
}
