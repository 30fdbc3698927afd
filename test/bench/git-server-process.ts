import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** Starts the Git server over HTTP, in a process of its own, for the bare repositories in a folder. */
export async function startServer(folder: string): Promise<{ readonly url: string; stop(): void }> {
  const program = fileURLToPath(new URL('./git-server.ts', import.meta.url));
  const child = spawn(process.execPath, [program, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return { url: line.toString('utf8').trim(), stop: () => child.stdin.end() };
}
