import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { whyMissing } from '../../support/go-program.ts';

const run = promisify(execFile);

interface TimedCommand {
  readonly stdout: string;
  readonly seconds: number;
  /** Of the command and the compilers that it started. */
  readonly cpuSeconds: number;
}

/** A module in `test/cluster/tools`, from which programs are built. */
export class GoModule {
  readonly folder: string;

  /** `name` is the path of the folder in `test/cluster/tools`. */
  constructor(name: string) {
    this.folder = fileURLToPath(new URL(`../tools/${name}`, import.meta.url));
  }

  /** A hash of the versions of all dependencies, and of further files of the module. */
  async hash(...files: readonly string[]): Promise<string> {
    const hash = createHash('sha256');
    for (const file of ['go.mod', 'go.sum', ...files]) hash.update(await readFile(join(this.folder, file)));
    return hash.digest('hex').slice(0, 16);
  }

  /**
   * Builds a package into a file. `report` receives a line for each step, with its duration. Throws an error that `whyMissing` explains where Go
   * or the modules are not available, else one with the output of the compiler.
   */
  async build(name: string, target: string, path: string, report: (line: string) => void, more = ''): Promise<void> {
    // A step of its own, so that the time of the network is not counted to the compiler.
    const download = await this.#timed(['list', '-deps', '-f', '{{.ImportPath}}', target]);
    report(`${name}: downloaded in ${download.seconds} s`);
    const build = await this.#timed(['build', '-ldflags', `-s -w ${more}`.trim(), '-o', path, target]);
    report(`${name}: built in ${build.seconds} s, with ${build.cpuSeconds} s of processor time`);
  }

  /** The folder of a dependency with all its files. Throws as `build`. */
  async dependencyFolder(path: string): Promise<string> {
    const { stdout } = await this.#timed(['mod', 'download', '-json', path], []);
    return (JSON.parse(stdout) as { readonly Dir: string }).Dir;
  }

  /** Runs the go command in the module. */
  async #timed(
    [verb = '', ...args]: readonly string[],
    flags: readonly string[] = ['-mod=readonly'],
  ): Promise<TimedCommand> {
    const env = { ...process.env, GOTOOLCHAIN: 'local', GOWORK: 'off', CGO_ENABLED: '0' };
    const start = Date.now();
    // Only a shell reports the processor time of a process that has ended.
    const script = 'command -v go > /dev/null || exit 127; go "$@"; code=$?; times >&2; exit $code';
    const command = ['-c', script, 'go', verb, ...flags, ...args];
    try {
      const { stdout, stderr } = await run('sh', command, { cwd: this.folder, env, maxBuffer: 1 << 26 });
      return { stdout, seconds: Math.round((Date.now() - start) / 1000), cpuSeconds: cpuSecondsOf(stderr) };
    } catch (error) {
      const { code, stderr = '' } = error as { readonly code?: unknown; readonly stderr?: string };
      if (code === 127) throw Object.assign(new Error('go is not installed'), { code: 'ENOENT' });
      if (whyMissing(error) !== undefined) throw error;
      throw new Error(`go ${verb} ${args.join(' ')} failed:\n${stderr.slice(-4000)}`, { cause: error });
    }
  }
}

/** Reads the last line of `times`: user and system time of the children of the shell. */
function cpuSecondsOf(output: string): number {
  const times = (output.trim().split('\n').at(-1) ?? '').matchAll(/(\d+)m([\d.]+)s/g);
  return Math.round([...times].reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0));
}
