import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { KubeApi } from '../../../support/api/kube-api.ts';
import { FLUX_NAMESPACE } from './flux.ts';

export const RECEIVER_TOKEN = 'token-of-the-receiver';

/**
 * A stand-in for Receivers of the type `generic-hmac` of Flux's notification-controller: one for each GitRepository, with its name. A request
 * counts if `X-Signature` has the HMAC of its body; then the GitRepository gets the annotation of a request.
 */
export class ReceiverStandIn implements AsyncDisposable {
  readonly #api: KubeApi;
  readonly #server: Server;
  /** Names of GitRepositories by the path of their Receiver. */
  readonly #names = new Map<string, string>();

  private constructor(api: KubeApi) {
    this.#api = api;
    this.#server = createServer((request, response) => {
      this.#handle(request).then(
        (status) => response.writeHead(status).end(),
        (error: unknown) => response.writeHead(500).end(String(error)),
      );
    });
  }

  static async start(kubeconfig: string): Promise<ReceiverStandIn> {
    const receiver = new ReceiverStandIn(await KubeApi.of(kubeconfig));
    await new Promise<void>((resolve) => receiver.#server.listen(0, '127.0.0.1', resolve));
    return receiver;
  }

  /** The address of the Receiver of a GitRepository; its path is made as Flux makes `.status.webhookPath`. */
  urlOf(name: string): string {
    const path = `/hook/${createHash('sha256').update(`${RECEIVER_TOKEN}${name}${FLUX_NAMESPACE}`).digest('hex')}`;
    this.#names.set(path, name);
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  async #handle(request: IncomingMessage): Promise<number> {
    const name = this.#names.get(request.url ?? '');
    const body = await buffer(request);
    if (request.method !== 'POST' || name === undefined) return 404;
    const sent = Buffer.from(String(request.headers['x-signature'] ?? ''));
    const expected = Buffer.from(`sha256=${createHmac('sha256', RECEIVER_TOKEN).update(body).digest('hex')}`);
    if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) return 400;
    const annotations = { 'reconcile.fluxcd.io/requestedAt': new Date().toISOString() };
    const path = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${FLUX_NAMESPACE}/gitrepositories/${name}`;
    const { status } = await this.#api.patch(path, { metadata: { annotations } });
    return status === 200 ? 200 : 500;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#api.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}
