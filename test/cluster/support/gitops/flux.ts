import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../../support/api/eventually.ts';
import { KubeApi, type KubeObject } from '../../../support/api/kube-api.ts';
import { freePort } from '../../../support/free-port.ts';
import { applyObjects } from '../apply-objects.ts';
import { Component, MAX_START_MS } from '../component.ts';
import type { ClusterPrograms } from '../programs.ts';
import { SourceStandIn } from './source-stand-in.ts';

export const FLUX_NAMESPACE = 'flux-system';

/** Flux's kustomize-controller, and a stand-in for its source-controller, on a control plane. */
export class Flux implements AsyncDisposable {
  readonly #folder: string;
  readonly #controller: Component;
  readonly #sources: SourceStandIn;

  private constructor(folder: string, controller: Component, sources: SourceStandIn) {
    this.#folder = folder;
    this.#controller = controller;
    this.#sources = sources;
  }

  static async start(
    programs: ClusterPrograms,
    kubeconfig: string,
    definitions: readonly KubeObject[],
    log: string,
  ): Promise<Flux> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-flux-'));
    const api = await KubeApi.of(kubeconfig);
    try {
      await applyObjects(api, definitions);
      await applyObjects(api, [
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: FLUX_NAMESPACE } } as unknown as KubeObject,
      ]);
    } finally {
      api.close();
    }
    const health = await freePort();
    const controller = Component.start({
      name: 'kustomize-controller',
      program: programs.pathOf('kustomize-controller'),
      flags: [
        `--health-addr=127.0.0.1:${health}`,
        `--metrics-addr=127.0.0.1:${await freePort()}`,
        '--enable-leader-election=false',
        // A Kustomization whose health is checked occupies a worker.
        '--concurrent=10',
        '--requeue-dependency=1s',
        // Nothing waits longer than a second before it is tried again.
        '--max-retry-delay=1s',
      ],
      log,
      environment: { KUBECONFIG: kubeconfig, RUNTIME_NAMESPACE: FLUX_NAMESPACE, TMPDIR: folder },
    });
    const sources = await SourceStandIn.start(kubeconfig);
    const flux = new Flux(folder, controller, sources);
    try {
      await eventually(
        async () => {
          controller.expectRunning();
          const answer = await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined);
          return answer?.status === 200;
        },
        (ready) => ready,
        MAX_START_MS,
      );
      return flux;
    } catch (error) {
      await flux[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#controller.stop();
    await this.#sources[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
  }
}
