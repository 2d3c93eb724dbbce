import 'uplot/dist/uPlot.min.css'
import '@xterm/xterm/css/xterm.css'
import './styles/base.css'
import './styles/controls.css'
import './styles/layout.css'
import './styles/tables.css'
import './styles/sandbox.css'
import './styles/wall.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { followLinks } from './data/location.ts'
import { loadSession } from './data/session.ts'
import { applyTheme } from './data/theme.ts'
import { listenForKeys } from './parts/keys.ts'

applyTheme()
followLinks()
listenForKeys()
const root = document.getElementById('app')
if (root) render(<App />, root)
void loadSession()
