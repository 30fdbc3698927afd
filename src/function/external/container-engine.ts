import { access, constants } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { messageOf } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { ENGINES, type EngineName } from './container-arguments.ts';
import { runProcess } from './run-process.ts';

export interface Engine {
  readonly name: EngineName;
  /** Absolute path. */
  readonly program: string;
}

export type EngineSearch = { readonly engine: Engine } | { readonly refusal: string };

/** Variables that an engine's command line needs to find its service, its images and the accounts of registries. */
const PASSED_ON = [
  ...[
    'HOME',
    'PATH',
    'USER',
    'XDG_RUNTIME_DIR',
    'XDG_CONFIG_HOME',
    'XDG_DATA_HOME',
    'DBUS_SESSION_BUS_ADDRESS',
    'TMPDIR',
  ],
  ...['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG', 'DOCKER_CERT_PATH', 'DOCKER_TLS_VERIFY'],
  ...[
    'CONTAINER_HOST',
    'CONTAINER_SSHKEY',
    'CONTAINERS_CONF',
    'REGISTRY_AUTH_FILE',
    'CONTAINERD_ADDRESS',
    'CONTAINERD_NAMESPACE',
  ],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
];

/** Returns the environment of an engine's command line; functions in containers do not get it. */
export function engineEnvironment(own: NodeJS.ProcessEnv): Record<string, string> {
  const passed = PASSED_ON.flatMap((name) => (own[name] === undefined ? [] : [[name, own[name]] as const]));
  return Object.fromEntries(passed);
}

export interface EngineOptions {
  /** Searches for this one only. */
  readonly only?: EngineName;
  /** As `engineEnvironment` returns it. */
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds for one engine to answer. */
  readonly time: number;
  readonly clock: Clock;
}

/** The first engine that is installed and answers. */
export async function findEngine({ only, env, time, clock }: EngineOptions): Promise<EngineSearch> {
  const problems: string[] = [];
  for (const name of only === undefined ? ENGINES : [only]) {
    const program = await inPath(name, env.PATH ?? '');
    if (program === undefined) continue;
    const problem = await probe(name, program, { env, time, clock });
    if (problem === undefined) return { engine: { name, program } };
    problems.push(problem);
  }
  const wanted = only ?? 'docker, podman or nerdctl';
  return {
    refusal:
      problems.length === 0
        ? `there is no container engine; install ${wanted}`
        : `no container engine answers (${problems.join('; ')}); start it`,
  };
}

/** `version` connects to the service of an engine that has one. */
async function probe(name: string, program: string, { env, time, clock }: EngineOptions): Promise<string | undefined> {
  const signal = new AbortController().signal;
  const bounds = { env, time, clock, signal, cwd: '/', input: '', outputBytes: 1024 * 1024 };
  try {
    const answer = await runProcess({ ...bounds, title: `${name} version`, file: program, arguments: ['version'] });
    if (answer.exitCode === 0) return undefined;
    return `${name}: ${engineMessage(answer.stderr) || `exit code ${answer.exitCode}`}`;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Extracts the error from the output of an engine: its last line without the pointer to its help and without the common prefix;
 * bounded.
 */
export function engineMessage(text: string): string {
  const lines = text.split('\n').filter((line) => line.trim() !== '' && !/^(?:Run|See) '/.test(line));
  const [, quoted] = /^time=\S+ level=fatal msg=(".*")$/.exec(lines.at(-1) ?? '') ?? [];
  return (quoted ?? lines.at(-1) ?? '').replace(/^(?:docker: )?Error(?: response from daemon)?: /, '').slice(0, 300);
}

async function inPath(name: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(':').filter(isAbsolute)) {
    const program = join(folder, name);
    const found = await access(program, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return program;
  }
  return undefined;
}
