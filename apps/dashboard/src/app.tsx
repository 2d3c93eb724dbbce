import type { ComponentType } from 'preact'
import { lazy } from './parts/lazy.tsx'
import { liveState } from './data/live.ts'
import { route } from './data/location.ts'
import { session, sessionError, signOut, loadSession } from './data/session.ts'
import { switchTheme } from './data/theme.ts'
import { Button } from './parts/controls.tsx'
import { useCurrentInView } from './parts/current-in-view.ts'
import { Confirmation } from './parts/dialog.tsx'
import { Empty, Skeleton } from './parts/status.tsx'
import { Toasts } from './parts/toasts.tsx'
import { CommandMenu, openCommandMenu } from './parts/command-menu.tsx'
import { NowPage } from './pages/now/now.tsx'
import { SandboxesPage } from './pages/sandboxes/sandboxes.tsx'
import { SignInPage } from './pages/sign-in.tsx'
import type { Route } from './model/route.ts'

export function App() {
  return (
    <>
      <Content />
      <Confirmation />
      <Toasts />
    </>
  )
}

function Content() {
  if (route.value.page === 'share') return <SharedPage />
  if (route.value.page === 'operator' && session.value !== undefined) return <Shell />
  if (sessionError.value) {
    return (
      <Empty title="The dashboard cannot reach its server">
        <p class="soft">{sessionError.value.message}</p>
        <Button action={loadSession}>Try again</Button>
      </Empty>
    )
  }
  if (session.value === undefined) return <Skeleton />
  if (session.value === null || route.value.page === 'sign-in') return <SignInPage />
  return <Shell />
}

function Shell() {
  return (
    <div class="shell">
      <Side />
      <main id="main" tabIndex={-1}>
        {liveState.value === 'lost' && (
          <div class="live-lost" role="status">
            The connection to the server is lost. Connecting again…
          </div>
        )}
        <Page route={route.value} />
      </main>
      <CommandMenu />
    </div>
  )
}

const SandboxPage = lazy(async () => (await import('./pages/sandbox/sandbox.tsx')).SandboxPage)
const WallPage = lazy(async () => (await import('./pages/wall/wall.tsx')).WallPage)
const RecordingsPage = lazy(
  async () => (await import('./pages/recordings/recordings.tsx')).RecordingsPage,
)
const RecordingPage = lazy(
  async () => (await import('./pages/recordings/recording.tsx')).RecordingPage,
)
const TemplatesPage = lazy(
  async () => (await import('./pages/templates/templates.tsx')).TemplatesPage,
)
const TemplatePage = lazy(async () => (await import('./pages/templates/template.tsx')).TemplatePage)
const SnapshotsPage = lazy(async () => (await import('./pages/snapshots.tsx')).SnapshotsPage)
const SecretsPage = lazy(async () => (await import('./pages/secrets.tsx')).SecretsPage)
const OperatorPage = lazy(async () => (await import('./pages/operator/operator.tsx')).OperatorPage)
const SharedPage = lazy(async () => (await import('./pages/shared.tsx')).SharedPage)
const TeamPage = lazy(async () => (await import('./pages/team.tsx')).TeamPage)

const plainPages: Partial<Record<Route['page'], ComponentType>> = {
  now: NowPage,
  sandboxes: SandboxesPage,
  wall: WallPage,
  recordings: RecordingsPage,
  templates: TemplatesPage,
  snapshots: SnapshotsPage,
  secrets: SecretsPage,
  team: TeamPage,
  operator: OperatorPage,
}

function Page({ route: to }: { readonly route: Route }) {
  if (to.page === 'sandbox') return <SandboxPage key={to.id} id={to.id} tab={to.tab} />
  if (to.page === 'recording') return <RecordingPage key={to.id} id={to.id} />
  if (to.page === 'template') return <TemplatePage key={to.id} id={to.id} buildId={to.buildId} />
  const Plain = plainPages[to.page]
  if (Plain) return <Plain />
  return (
    <Empty title="There is no such page">
      <a class="link" href="/">
        Go to the start page
      </a>
    </Empty>
  )
}

const links = [
  ['/', 'Now', ['now']],
  ['/sandboxes', 'Sandboxes', ['sandboxes', 'sandbox']],
  ['/wall', 'Wall', ['wall']],
  ['/recordings', 'Recordings', ['recordings', 'recording']],
  ['/templates', 'Templates', ['templates', 'template']],
  ['/snapshots', 'Snapshots', ['snapshots']],
  ['/secrets', 'Secrets', ['secrets']],
  ['/team', 'Team', ['team']],
  ['/operator', 'Operator', ['operator']],
] as const

function Side() {
  const { page } = route.value
  const nav = useCurrentInView(page)
  return (
    <header class="side">
      <a class="brand" href="/" aria-label="Atoll">
        <img src="/assets/icon.svg" alt="" />
        <span>Atoll</span>
      </a>
      <nav aria-label="Pages" ref={nav}>
        {links.map(([href, label, pages]) => (
          <a
            key={href}
            href={href}
            {...(pages.some((name) => name === page) && { 'aria-current': 'page' as const })}
          >
            {label}
          </a>
        ))}
      </nav>
      <div class="side-end">
        <div class="team clip" title={session.value?.teamName}>
          {session.value?.teamName}
        </div>
        <div class="row">
          <Button
            kind="plain"
            isSmall

            title="Commands (⌘K)"
            action={openCommandMenu}
          >
            ⌘K
          </Button>
          <Button
            kind="plain"
            isSmall
            aria-label="Switch colours"
            title="Switch between light and dark"
            action={switchTheme}
          >
            ◐
          </Button>
          {session.value && (
            <Button kind="plain" isSmall action={signOut}>
              Sign out
            </Button>
          )}
        </div>
      </div>
    </header>
  )
}
