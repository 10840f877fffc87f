import { render } from 'preact'
import { App } from './app'
import { open } from './api'
import { applyTheme } from './store'

applyTheme()
render(<App />, document.getElementById('app')!)
void open().catch(() => {})
