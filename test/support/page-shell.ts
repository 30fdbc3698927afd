import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { eventually } from './api/eventually.ts';
import { type PageStep, showsAs } from './page-steps.ts';

const run = promisify(execFile);
export const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
/** Below the time of a test, so that the output of a command that hangs is reported. */
const MAX_COMMAND_MS = 150_000;
/** What changes something at each call, also where its output is another one. */
const ONCE =
  /^kubectl .*\b(?:apply|delete|create|scale|rollout|wait|label)\b|^sluice (?:import|export)|^helm |host\.mjs (?:[amrfp]|cl|cr|comment )/;

interface Failure {
  readonly stdout: string;
  readonly stderr: string;
  readonly killed?: boolean;
}

/** The shell of a user who follows a page: kubectl, and `sluice` of this checkout. */
export class PageShell {
  /** Where commands run. */
  readonly work: string;
  readonly #environment: NodeJS.ProcessEnv;

  private constructor(work: string, environment: NodeJS.ProcessEnv) {
    this.work = work;
    this.#environment = environment;
  }

  /** `programs` are further programs by their names, `environment` what the page lets the user export. */
  static async create(
    folder: string,
    kubeconfig: string,
    programs: Readonly<Record<string, string>> = {},
    environment: Readonly<Record<string, string>> = {},
  ): Promise<PageShell> {
    const [bin, work] = [join(folder, 'bin'), join(folder, 'work')];
    for (const path of [bin, work]) await mkdir(path);
    const calls = { sluice: `'${process.execPath}' '${join(CHECKOUT, 'bin/sluice.js')}'`, ...programs };
    for (const [name, call] of Object.entries(calls)) {
      await writeFile(join(bin, name), `#!/bin/sh\nexec ${call} "$@"\n`);
      await chmod(join(bin, name), 0o755);
    }
    // Under npm the program prints commands with npx; readers of a page have it on their PATH.
    const underNpm = { npm_command: undefined, npm_lifecycle_event: undefined };
    const path = `${bin}:${process.env.PATH}`;
    const own = { ...underNpm, PATH: path, HOME: folder, KUBECONFIG: kubeconfig, NO_COLOR: '1' };
    return new PageShell(work, { ...process.env, ...own, ...environment });
  }

  /** Returns what a command printed, whether it failed or not. */
  async run(command: string): Promise<string> {
    return this.#bash(command).catch(({ stdout, stderr, killed }: Failure) => {
      const late = killed === true ? `\nnot done within ${MAX_COMMAND_MS} ms` : '';
      return `${stdout}${stderr}${late}`;
    });
  }

  /** Runs a command that must succeed. */
  async succeed(command: string): Promise<void> {
    await this.#bash(command).catch(async ({ stdout, stderr }: Failure) => {
      const repositories = await this.run('kubectl get repositories --all-namespaces --output=yaml');
      throw new Error(`$ ${command}\n${stdout}${stderr}\n${repositories}`);
    });
  }

  /** Runs the command of a page, which must print what the page shows. */
  async follow({ command, shown }: PageStep): Promise<void> {
    let output = await this.run(command);
    if (!ONCE.test(command) && !showsAs(output, shown))
      output = await eventually(
        () => this.run(command),
        (later) => showsAs(later, shown),
      ).catch((error: unknown) => `${output}${String(error)}`);
    if (!showsAs(output, shown)) expect(`$ ${command}\n${output}`).toBe(`$ ${command}\n${shown}`);
  }

  async #bash(command: string): Promise<string> {
    const options = { cwd: this.work, env: this.#environment, timeout: MAX_COMMAND_MS };
    const { stdout, stderr } = await run('bash', ['--norc', '-c', command], options);
    return `${stdout}${stderr}`;
  }
}
