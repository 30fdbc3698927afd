import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import { issueCertificate } from '../../../src/server/certificates/issue-certificate.ts';
import type { KubeApi } from '../../support/api/kube-api.ts';
import type { ControlPlane } from './control-plane.ts';
import { created } from './extension-server.ts';
import { NAMESPACE } from './sluice-serve.ts';

const HOUR_MS = 3_600_000;

/** What a kube-apiserver, or the network to it, does wrong. May be changed at any time. */
export interface ApiFaults {
  /** A status in place of the response; undefined for the response of the server. */
  status?: ((method: string, path: string) => number | undefined) | undefined;
  /** True for a request that gets no response, while its connection stays open. */
  isSilent?: ((method: string, path: string) => boolean) | undefined;
  /** Milliseconds after which each watch ends. */
  watchMs?: number | undefined;
}

/** A proxy before a kube-apiserver. */
export interface ApiProxy extends AsyncDisposable {
  readonly faults: ApiFaults;
  /** A kubeconfig of the account of Sluice that leads through the proxy. */
  readonly kubeconfig: string;
  /** Number of faults that were caused. */
  readonly struck: number;
  /** While true, no byte passes in either direction, and connections stay open: a network that is cut. */
  isCut: boolean;
  /** Breaks all responses that are in progress. */
  dropStreams(): void;
}

export async function startApiProxy(plane: ControlPlane, admin: KubeApi, name: string): Promise<ApiProxy> {
  const valid = { notBefore: Date.now() - HOUR_MS, notAfter: Date.now() + HOUR_MS };
  const authority = await issueCertificate({ ...valid, commonName: name, usage: 'authority' });
  const own = await issueCertificate({ ...valid, commonName: name, usage: 'server', names: ['127.0.0.1'] }, authority);
  const target = new URL(plane.url);
  const agent = new Agent({ keepAlive: true, ca: await readFile(join(plane.folder, 'ca.crt'), 'utf8') });
  const faults: ApiFaults = {};
  const streams = new Set<{ readonly answer: IncomingMessage; readonly response: ServerResponse }>();
  const held = new Set<ServerResponse>();
  let isCut = false;
  let struck = 0;

  const forward = (incoming: IncomingMessage, response: ServerResponse) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const outgoing = request(
      { host: target.hostname, port: target.port, path: url, method, headers, agent },
      (answer) => {
        const stream = { answer, response };
        streams.add(stream);
        response.on('close', () => {
          streams.delete(stream);
          answer.destroy();
        });
        if (isCut) return;
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.on('error', () => response.destroy());
        answer.pipe(response);
        if (faults.watchMs === undefined || !/[?&]watch=(true|1)\b/.test(url)) return;
        setTimeout(() => {
          struck += 1;
          answer.unpipe(response);
          response.end();
          answer.destroy();
        }, faults.watchMs);
      },
    );
    outgoing.on('error', () => response.destroy());
    incoming.pipe(outgoing);
  };
  const server = createServer({ key: own.key, cert: own.certificate }, (incoming, response) => {
    if (isCut) return void held.add(response);
    if (faults.isSilent?.(incoming.method ?? '', incoming.url ?? '') === true) {
      struck += 1;
      incoming.resume();
      return void held.add(response);
    }
    const status = faults.status?.(incoming.method ?? '', incoming.url ?? '');
    if (status === undefined) return forward(incoming, response);
    struck += 1;
    incoming.resume();
    const body = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: status, message: 'a fault of the test' };
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(status === 429 ? { 'retry-after': '1' } : {}),
    });
    response.end(JSON.stringify(body));
  });
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  const { body } = await created(
    admin.post(`/api/v1/namespaces/${NAMESPACE}/serviceaccounts/sluice/token`, { spec: {} }),
  );
  const { token } = body.status as { readonly token: string };
  const ca = Buffer.from(authority.certificate).toString('base64');
  const kubeconfig = join(plane.folder, `${name}.kubeconfig`);
  const content = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': name },
    clusters: [{ name, cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': ca } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  };
  await writeFile(kubeconfig, JSON.stringify(content), { mode: 0o600 });

  const dropStreams = () => {
    for (const { response } of streams) response.destroy();
  };
  return {
    faults,
    kubeconfig,
    dropStreams,
    get struck() {
      return struck;
    },
    get isCut() {
      return isCut;
    },
    set isCut(value) {
      isCut = value;
      if (value) for (const { answer, response } of streams) answer.unpipe(response).pause();
      else {
        // A connection does not survive the cut.
        dropStreams();
        for (const response of held) response.destroy();
        held.clear();
      }
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      // `closeAllConnections` leaves those whose TLS handshake goes on.
      for (const socket of sockets) socket.destroy();
      agent.destroy();
      await closed;
    },
  };
}
