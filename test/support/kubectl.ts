import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';

const KUBECTL = process.env.SLUICE_TEST_KUBECTL ?? 'kubectl';

export interface KubectlResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** True if kubectl can be run here. */
export function hasKubectl(): boolean {
  try {
    execFileSync(KUBECTL, ['version', '--client'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Milliseconds: on a loaded machine the deletion of all manifests waits more than 30 s for the controllers of the cluster. */
const TIMEOUT_MS = 55_000;

/** The real kubectl, as a user of one kubeconfig has it. Discovery is cached in a folder of its own. */
export class Kubectl {
  readonly #environment: NodeJS.ProcessEnv;

  constructor(kubeconfig: string, cache: string) {
    this.#environment = { ...process.env, KUBECONFIG: kubeconfig, KUBECACHEDIR: cache };
  }

  /** Starts it and leaves it running; the caller kills it. */
  start(words: readonly string[], environment: NodeJS.ProcessEnv = {}): ChildProcess {
    return spawn(KUBECTL, words, { env: { ...this.#environment, ...environment } });
  }

  /** Runs it to its end with words that hold no spaces, or a list of words. */
  async run(
    command: string | readonly string[],
    { input = '', ...environment }: { readonly input?: string; readonly KUBE_EDITOR?: string } = {},
  ): Promise<KubectlResult> {
    const child = this.start(typeof command === 'string' ? command.split(' ') : command, environment);
    const timer = setTimeout(() => child.kill('SIGKILL'), TIMEOUT_MS);
    let [stdout, stderr] = ['', ''];
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    // One that ends without reading its input is no failure of ours.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
    const [code] = (await once(child, 'close')) as [number | null];
    clearTimeout(timer);
    return { code, stdout, stderr };
  }

  /** What it prints; it must succeed. */
  async ok(...call: Parameters<Kubectl['run']>): Promise<string> {
    const { code, stdout, stderr } = await this.run(...call);
    if (code !== 0) throw new Error(`kubectl ${String(call[0])} ended with ${code}: ${stdout}${stderr}`);
    return stdout.trim();
  }

  /** What it complains about; it must end with exit code 1. */
  async fails(...call: Parameters<Kubectl['run']>): Promise<string> {
    const { code, stdout, stderr } = await this.run(...call);
    if (code !== 1) throw new Error(`kubectl ${String(call[0])} ended with ${code}: ${stdout}${stderr}`);
    return stderr.trim();
  }
}
