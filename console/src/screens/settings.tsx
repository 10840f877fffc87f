export function Settings(_p: { tab?: string }) { return <h1>Settings</h1> }
