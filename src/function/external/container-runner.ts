import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { checkImage, isPinned } from './check-image.ts';
import { containerArguments, type EngineName } from './container-arguments.ts';
import { type Engine, type EngineSearch, engineMessage, findEngine } from './container-engine.ts';
import type { ExternalResult } from './external-runner.ts';
import { runProcess } from './run-process.ts';

export interface ContainerOptions {
  /** Uses this engine only; otherwise the first of docker, podman and nerdctl that answers. */
  readonly engine?: EngineName;
  /** As `engineEnvironment` returns it. */
  readonly env: Readonly<Record<string, string>>;
  /** Refuses images that are not named by their digest. */
  readonly requireDigest: boolean;
  readonly allowNetwork: boolean;
  readonly pull: 'always' | 'missing' | 'never';
  /** Milliseconds for one run; fetching its image has its own bound. */
  readonly time: number;
  /** Bytes of standard output. */
  readonly outputBytes: number;
  /** Bytes for all processes of a container. */
  readonly memoryBytes: number;
  readonly clock: Clock;
  /** Next step for an image that cannot be run: `name a built-in function in its place`. */
  readonly instead: string;
  /** A name that no other container has: letters, digits and dashes. */
  readonly newName: () => string;
}

/** Milliseconds. */
const PROBE_TIMEOUT_MS = 5_000;
const PULL_TIMEOUT_MS = 5 * 60_000;
const REMOVAL_TIMEOUT_MS = 15_000;
/** Milliseconds for which the result of the search for an engine is cached. */
const ENGINE_CACHE_MS = 60_000;

/** The exit code of an engine that could not run a container. */
const ENGINE_FAILED = 125;

/** Runs functions as containers that have no network, no privileges and only their own /tmp to write to. */
export class ContainerRunner {
  readonly #options: ContainerOptions;
  #search: { readonly result: Promise<EngineSearch>; readonly until: number } | undefined;

  constructor(options: ContainerOptions) {
    this.#options = options;
  }

  /** Returns why it cannot run this image; undefined if it can. */
  async refusal(image: string): Promise<string | undefined> {
    const found = await this.#engineFor(image);
    return 'refusal' in found ? found.refusal : undefined;
  }

  /** See ExternalRunner. */
  async run(image: string, input: string, signal: AbortSignal): Promise<ExternalResult> {
    const found = await this.#engineFor(image);
    if ('refusal' in found) throw new SluiceError('Unavailable', found.refusal);
    const { engine } = found;
    await this.#fetch(engine, image, signal);
    const name = this.#options.newName();
    const { allowNetwork, memoryBytes, time } = this.#options;
    const words = containerArguments({ engine: engine.name, name, image, allowNetwork, memoryBytes });
    let answer: ExternalResult;
    try {
      answer = await this.#call(engine, `image ${image}`, words, { time, signal, input });
    } catch (error) {
      await this.#remove(engine, name);
      throw error;
    }
    if (answer.exitCode === ENGINE_FAILED && answer.stdout === '') {
      await this.#remove(engine, name);
      throw new SluiceError('Unavailable', `${engine.name} cannot run image ${image}: ${engineMessage(answer.stderr)}`);
    }
    return answer;
  }

  async #engineFor(image: string): Promise<EngineSearch> {
    const { requireDigest, clock, engine: only, env, instead } = this.#options;
    try {
      checkImage(image);
    } catch (error) {
      return { refusal: messageOf(error) };
    }
    if (requireDigest && !isPinned(image))
      return {
        refusal: `image ${image} cannot be run: only pinned images are allowed; add @sha256:<digest> to its name, or ${instead}`,
      };
    if (this.#search === undefined || this.#search.until <= clock.now()) {
      const result = findEngine({ ...(only === undefined ? {} : { only }), env, time: PROBE_TIMEOUT_MS, clock });
      this.#search = { result, until: clock.now() + ENGINE_CACHE_MS };
    }
    const found = await this.#search.result;
    return 'refusal' in found ? { refusal: `image ${image} cannot be run: ${found.refusal}, or ${instead}` } : found;
  }

  /** Pulls the image if the policy requires it; a missing image is pulled when it is run. */
  async #fetch(engine: Engine, image: string, signal: AbortSignal): Promise<void> {
    const { pull, instead } = this.#options;
    if (pull === 'never') return;
    if (pull === 'missing') {
      const inspection = await this.#call(engine, `${engine.name} image inspect`, ['image', 'inspect', image], {
        time: PROBE_TIMEOUT_MS,
        signal,
      });
      if (inspection.exitCode === 0) return;
    }
    const title = `fetching image ${image}`;
    const pulled = await this.#call(engine, title, ['pull', '--quiet', image], { time: PULL_TIMEOUT_MS, signal });
    if (pulled.exitCode !== 0)
      throw new SluiceError(
        'Unavailable',
        `image ${image} cannot be pulled: ${engineMessage(pulled.stderr)}; check its name, or ${instead}`,
      );
  }

  /** Killing the client does not end its container, so this removes it through the engine, if that answers. */
  async #remove(engine: Engine, name: string): Promise<void> {
    const { signal } = new AbortController();
    for (const words of [
      ['kill', name],
      ['rm', '--force', name],
    ])
      await this.#call(engine, `${engine.name} ${words[0]}`, words, { time: REMOVAL_TIMEOUT_MS, signal }).catch(
        () => undefined,
      );
  }

  #call(
    engine: Engine,
    title: string,
    words: readonly string[],
    { time, signal, input = '' }: { readonly time: number; readonly signal: AbortSignal; readonly input?: string },
  ): Promise<ExternalResult> {
    const { env, clock, outputBytes } = this.#options;
    const bounds = { env, time, clock, signal, cwd: '/', input, outputBytes };
    return runProcess({ ...bounds, title, file: engine.program, arguments: words });
  }
}
