/** Container engines that take Docker's command line, in the order in which they are looked for. */
export const ENGINES = ['docker', 'podman', 'nerdctl'] as const;

export type EngineName = (typeof ENGINES)[number];

export interface ContainerRun {
  readonly engine: EngineName;
  /** Name of the container, by which it can be killed. */
  readonly name: string;
  /** Checked by `checkImage`. */
  readonly image: string;
  /** Gives it the network of the machine, as `kpt fn --allow-network` does. */
  readonly allowNetwork: boolean;
  /** Bytes. */
  readonly memoryBytes: number;
}

/** No user of the machine; the same number on every system, where names differ. */
const NOBODY = '65534:65534';

/** The arguments of an engine to run a function: no privileges, nothing to write to but /tmp, no network. The image is there already. */
export function containerArguments({ engine, name, image, allowNetwork, memoryBytes }: ContainerRun): string[] {
  return [
    ...['run', '--rm', '--interactive', '--name', name, '--pull', 'never'],
    ...['--network', allowNetwork ? 'host' : 'none'],
    ...['--user', NOBODY, '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ...['--read-only', '--tmpfs', '/tmp:rw,noexec,nosuid,nodev,size=256m', '--env', 'HOME=/tmp'],
    ...['--pids-limit', '256', '--memory', String(memoryBytes), '--memory-swap', String(memoryBytes)],
    ...['--ulimit', 'core=0'],
    // What a function prints is read here; a log of it on the disk of the machine would only grow.
    ...(engine === 'nerdctl' ? [] : ['--log-driver', 'none']),
    image,
  ];
}
