import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Requests that a server got. */
export interface GitTraffic {
  readonly pushes: number;
  /** Requests for objects. */
  readonly fetches: number;
  /** Requests for the capabilities of the server and for refs. */
  readonly listings: number;
}

export interface ServerProcess {
  readonly url: string;
  /** The requests since the last call. */
  traffic(): Promise<GitTraffic>;
  stop(): void;
}

/** Starts the Git server over HTTP, in a process of its own, for the bare repositories in a folder. */
export async function startServer(folder: string): Promise<ServerProcess> {
  const program = fileURLToPath(new URL('./git-server.ts', import.meta.url));
  const child = spawn(process.execPath, [program, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const next = async () => ((await once(lines, 'line')) as [string])[0];
  const url = await next();
  return {
    url,
    traffic: async () => {
      const line = next();
      child.stdin.write('\n');
      return JSON.parse(await line) as GitTraffic;
    },
    stop: () => child.stdin.end(),
  };
}
