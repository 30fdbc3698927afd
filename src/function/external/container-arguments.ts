/** Container engines with Docker's command line, in the order of preference. */
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

/** The ids of an unprivileged user; numbers, since names differ between systems. */
const UNPRIVILEGED_USER = '65534:65534';

/**
 * Returns the arguments of an engine to run a function: no privileges, only /tmp writable, no network. The image was pulled before.
 */
export function containerArguments({ engine, name, image, allowNetwork, memoryBytes }: ContainerRun): string[] {
  return [
    ...['run', '--rm', '--interactive', '--name', name, '--pull', 'never'],
    ...['--network', allowNetwork ? 'host' : 'none'],
    ...['--user', UNPRIVILEGED_USER, '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
    ...['--read-only', '--tmpfs', '/tmp:rw,noexec,nosuid,nodev,size=256m', '--env', 'HOME=/tmp'],
    ...['--pids-limit', '256', '--memory', String(memoryBytes), '--memory-swap', String(memoryBytes)],
    ...['--ulimit', 'core=0'],
    // Output is read through pipes; a log of it on the disk would only grow.
    ...(engine === 'nerdctl' ? [] : ['--log-driver', 'none']),
    image,
  ];
}
