import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { GIT_ENVIRONMENT } from './git-cli.ts';

/** How the server behaves; may be changed while it runs. */
export interface GitServerBehaviour {
  /** Basic authentication that every request must have. */
  auth?: { readonly username: string; readonly password: string } | undefined;
  /** Waits before each answer. */
  delayMs?: number | undefined;
  /** Takes requests and never answers: all, or those that push or fetch (once they have authenticated). */
  hang?: 'all' | 'push' | 'fetch' | undefined;
  /** Answers everything with this status. */
  refuse?: number | undefined;
  /** Redirects every request. */
  redirectTo?: string | undefined;
  /** Breaks the connection of a push: before git sees it, or after git has done it and before the answer. */
  dropPush?: 'before' | 'after' | undefined;
  /** Accepts a push only after a request for the refs, one for each. */
  wantsGetFirst?: boolean | undefined;
  /** Knows nothing of newer versions of the protocol. */
  oldProtocol?: boolean | undefined;
  /** Ends each answer to a POST after so many bytes, as if that were all. */
  cutAfter?: number | undefined;
  /** Keeps answers to a fetch, which are made at once, until this is over. */
  holdFetch?: Promise<unknown> | undefined;
  /** Begins a push when this is over. */
  holdPush?: Promise<unknown> | undefined;
  /** Keeps answers to a push, which is carried out at once, until this is over. */
  holdPushed?: Promise<unknown> | undefined;
  /** What is said, beside the status, by `refuse`. */
  words?: string | undefined;
  retryAfter?: number | undefined;
}

export interface GitServerOptions extends GitServerBehaviour {
  /** Folder that holds the bare repositories. */
  readonly root: string;
  /** Hooks of all repositories: `pre-receive`, `update`, … → text of a script. */
  readonly hooks?: Readonly<Record<string, string>>;
  /** Is called with path and query before Git answers; can make the repository. */
  readonly beforeRequest?: (url: string) => void;
  /** Is called with path and query when Git has answered. */
  readonly afterRequest?: (url: string) => void;
}

export interface GitRequest {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  /** The user name of basic authentication, if any was sent. */
  readonly user: string | undefined;
  /** Set if it requests objects. */
  fetches?: boolean;
  status: number | undefined;
}

export interface GitServer {
  /** `http://127.0.0.1:<port>`; append `/<repository>`. */
  readonly url: string;
  readonly behaviour: GitServerBehaviour;
  readonly requests: readonly GitRequest[];
  close(): Promise<void>;
}

/** A smart-HTTP server on loopback around `git http-backend`. */
export async function startGitServer(options: GitServerOptions): Promise<GitServer> {
  const { root, hooks, beforeRequest, afterRequest, ...behaviour } = options;
  const hooksFolder = mkdtempSync(join(tmpdir(), 'sluice-hooks-'));
  for (const [name, script] of Object.entries(hooks ?? {})) {
    writeFileSync(join(hooksFolder, name), script);
    chmodSync(join(hooksFolder, name), 0o755);
  }
  const requests: GitRequest[] = [];
  const children = new Set<ChildProcess>();
  let askedForRefs = false;

  const server = createServer((request, response) => {
    const entry: GitRequest = {
      method: request.method ?? '',
      url: request.url ?? '',
      user: credentialsOf(request)?.[0],
      status: undefined,
    };
    requests.push(entry);
    if (entry.method === 'POST' && entry.url.endsWith('/git-upload-pack')) {
      // A request that flows before it is piped, after a delay, loses its body.
      request.pause();
      request.once('data', (chunk: Buffer) => {
        // Only long requests, for objects, are compressed.
        entry.fetches = chunk.includes('command=fetch') || request.headers['content-encoding'] === 'gzip';
      });
    }
    response.on('close', () => {
      entry.status = response.headersSent ? response.statusCode : undefined;
      afterRequest?.(entry.url);
    });
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pushes = request.method === 'POST' && request.url?.endsWith('/git-receive-pack') === true;
    if (behaviour.hang === 'all') return;
    if (behaviour.delayMs !== undefined) await delay(behaviour.delayMs);
    if (behaviour.refuse !== undefined) {
      const later = behaviour.retryAfter === undefined ? {} : { 'retry-after': `${behaviour.retryAfter}` };
      return end(response, behaviour.refuse, { 'content-type': 'text/plain', ...later }, behaviour.words);
    }
    if (behaviour.redirectTo !== undefined)
      return end(response, 302, { location: `${behaviour.redirectTo}${request.url}` });
    const [username, password] = credentialsOf(request) ?? [];
    const { auth } = behaviour;
    if (auth !== undefined && (username !== auth.username || password !== auth.password))
      return end(response, 401, { 'www-authenticate': 'Basic realm="test"' });
    if (behaviour.hang === 'push' && pushes) return;
    if (behaviour.hang === 'fetch' && request.url?.includes('git-upload-pack') === true) return;
    if (pushes) await behaviour.holdPush;
    if (pushes && behaviour.dropPush === 'before') {
      request.once('data', () => request.socket.destroy());
      return;
    }
    if (pushes && behaviour.wantsGetFirst === true && !askedForRefs) return end(response, 400);
    if (!request.url?.includes('upload-pack')) askedForRefs = !pushes;
    beforeRequest?.(request.url ?? '');
    const fetches = request.method === 'POST' && request.url?.endsWith('/git-upload-pack') === true;
    const held = pushes ? behaviour.holdPushed : fetches ? behaviour.holdFetch : undefined;
    runBackend(request, response, pushes && behaviour.dropPush === 'after', held);
  }

  function runBackend(
    request: IncomingMessage,
    response: ServerResponse,
    drop: boolean,
    held: Promise<unknown> | undefined,
  ): void {
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost');
    const child = spawn('git', ['http-backend'], {
      env: {
        ...GIT_ENVIRONMENT,
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: decodeURIComponent(pathname),
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        ...(request.headers['content-length'] === undefined
          ? {}
          : { CONTENT_LENGTH: request.headers['content-length'] }),
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: behaviour.oldProtocol === true ? '' : String(request.headers['git-protocol'] ?? ''),
        REMOTE_USER: credentialsOf(request)?.[0] ?? 'anonymous',
        GIT_CONFIG_COUNT: '3',
        GIT_CONFIG_KEY_0: 'http.receivepack',
        GIT_CONFIG_VALUE_0: 'true',
        GIT_CONFIG_KEY_1: 'core.hooksPath',
        GIT_CONFIG_VALUE_1: hooksFolder,
        GIT_CONFIG_KEY_2: 'safe.directory',
        GIT_CONFIG_VALUE_2: '*',
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    children.add(child);
    child.on('close', async () => {
      children.delete(child);
      await held;
      for (const chunk of kept) take(chunk);
      if (drop) request.socket.destroy();
      else response.end();
    });
    child.stdin.on('error', () => {
      // The backend may answer without reading the whole request.
    });
    request.pipe(child.stdin);
    let left = request.method === 'POST' ? (behaviour.cutAfter ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const send = (chunk: Buffer) => {
      response.write(chunk.subarray(0, left));
      left = Math.max(0, left - chunk.length);
    };
    let head: Buffer | undefined = Buffer.alloc(0);
    const kept: Buffer[] = [];
    const take = (chunk: Buffer) => {
      if (drop) return;
      if (head === undefined) {
        send(chunk);
        return;
      }
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      writeHead(response, head.toString('latin1', 0, end));
      send(head.subarray(end + 4));
      head = undefined;
    };
    child.stdout.on('data', (chunk: Buffer) => {
      if (held === undefined) take(chunk);
      else kept.push(chunk);
    });
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behaviour,
    requests,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      for (const child of children) child.kill('SIGKILL');
      await closed;
      rmSync(hooksFolder, { recursive: true, force: true });
    },
  };
}

/** The header block of a CGI answer: `Status: 404 Not Found` and plain headers. */
function writeHead(response: ServerResponse, block: string): void {
  let status = 200;
  for (const line of block.split('\r\n')) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).trim()];
    if (name.toLowerCase() === 'status') status = Number.parseInt(value, 10);
    else response.setHeader(name, value);
  }
  response.writeHead(status);
}

function end(response: ServerResponse, status: number, headers: Record<string, string> = {}, words = ''): void {
  response.writeHead(status, headers).end(words);
}

function credentialsOf(request: IncomingMessage): [string, string] | undefined {
  const [, encoded] = /^Basic (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return [text.slice(0, colon), text.slice(colon + 1)];
}
