import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../../support/api/eventually.ts';
import { freePort } from '../../../support/free-port.ts';

/** Why Prometheus cannot run here; undefined if it can. */
export function prometheusMissing(): string | undefined {
  return spawnSync('prometheus', ['--version']).error === undefined ? undefined : 'prometheus is not installed';
}

/** A Prometheus that scrapes itself once a second, as each of these sites. */
export class Prometheus implements AsyncDisposable {
  readonly address: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(address: string, child: ChildProcess, folder: string) {
    this.address = address;
    this.#child = child;
    this.#folder = folder;
  }

  /** Starts, and waits until there is a sample of each site: `up{site="<site>"}`. */
  static async start(sites: readonly string[]): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-prometheus-'));
    const listen = `127.0.0.1:${await freePort()}`;
    const jobs = sites.map((site, at) => ({
      job_name: `site-${at}`,
      static_configs: [{ targets: [listen], labels: { site } }],
    }));
    const config = join(folder, 'prometheus.yaml');
    // JSON is YAML.
    await writeFile(config, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }));
    const words = [
      '--config.file',
      config,
      '--storage.tsdb.path',
      join(folder, 'data'),
      '--web.listen-address',
      listen,
    ];
    const prometheus = new Prometheus(`http://${listen}`, spawn('prometheus', words, { stdio: 'ignore' }), folder);
    try {
      await eventually(
        () => prometheus.#samples(),
        (samples) => samples === sites.length,
      );
      return prometheus;
    } catch (error) {
      await prometheus[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #samples(): Promise<number> {
    const response = await fetch(`${this.address}/api/v1/query?query=${encodeURIComponent('up == 1')}`).catch(
      () => undefined,
    );
    if (response?.ok !== true) return 0;
    const { data } = (await response.json()) as { readonly data: { readonly result: readonly unknown[] } };
    return data.result.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.kill()) await once(this.#child, 'exit');
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
