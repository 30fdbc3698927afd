import { type ChildProcess, spawn } from 'node:child_process';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isSluiceError, messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { HostRules } from '../../network/host-rules.ts';
import { readSshCredentials } from '../../network/remote-credentials.ts';
import { readSshAddress, type SshAddress } from '../../network/ssh-address.ts';
import { collectStderr } from '../../process/git-process.ts';
import { connectPinned, reportsUnreachable } from '../../process/pinned-host.ts';
import { remoteError } from '../../process/remote-error.ts';
import { withSshConfig } from '../../process/ssh-config.ts';
import { advertisedRefs } from '../protocol/advertisement.ts';
import type { Call } from '../protocol/call.ts';
import type { Connection, Exchange } from '../protocol/connection.ts';
import { FLUSH } from '../protocol/pkt-line.ts';
import { ProtocolError } from '../protocol/protocol-error.ts';
import { failureOf, type RequestFailure } from '../protocol/request-failure.ts';
import { afterAdvertisement } from './after-advertisement.ts';

/**
 * Git's services of one repository over ssh: a process of `ssh` for each exchange. The server begins with its advertisement; the
 * request is sent when that has been read, so that a connection that fails before has certainly changed nothing.
 *
 * Errors: SluiceError with RequestFailure as details, and ProtocolError as thrown by `read`. No message contains a secret.
 */
export class SshConnection implements Connection {
  readonly url: string;
  readonly compresses = false;
  readonly advertisesFirst = true;
  readonly #address: SshAddress;
  readonly #running = new Set<ChildProcess>();

  readonly #hosts: HostRules;

  /** Throws InvalidInput for what is no address for ssh. */
  constructor(url: string, hosts: HostRules) {
    const address = readSshAddress(url);
    if ('problem' in address) throw new SluiceError('InvalidInput', `the address of the remote ${address.problem}`);
    this.url = address.url;
    this.#address = address;
    this.#hosts = hosts;
  }

  async run<Result>(call: Call, exchange: Exchange<Result>): Promise<Result> {
    const credentials = await call.race(readSshCredentials(call.remote));
    return await withSshConfig(credentials, (settings) =>
      connectPinned(
        this.#hosts,
        this.#address,
        (pin) => this.#exchange([...settings, ...pin], exchange, call.signal),
        (outcome) =>
          'error' in outcome && !failureOf(outcome.error).mayBeApplied && reportsUnreachable(messageOf(outcome.error)),
      ),
    );
  }

  /** Ends all processes; exchanges in progress fail. */
  async close(): Promise<void> {
    for (const child of this.#running) child.kill('SIGKILL');
  }

  async #exchange<Result>(
    settings: readonly string[],
    exchange: Exchange<Result>,
    signal: AbortSignal,
  ): Promise<Result> {
    signal.throwIfAborted();
    const child = this.#start(settings, exchange);
    const stderr = collectStderr(child);
    const ended = new Promise<Error | undefined>((resolve) => {
      child.once('error', resolve);
      child.once('close', () => resolve(undefined));
    });
    const stop = () => child.kill('SIGKILL');
    signal.addEventListener('abort', stop, { once: true });
    const sending: Sending = { begun: false, failure: undefined };
    try {
      return await exchange.read(answerOf(child, exchange, sending), signal);
    } catch (error) {
      // The reason for a truncated response is available when ssh has ended; any other error comes from `read`.
      const isOver = child.stdout?.readableEnded === true;
      if (!isOver) stop();
      const notStarted = await ended;
      const details: RequestFailure = { mayBeApplied: sending.begun && exchange.service === 'git-receive-pack' };
      if (signal.aborted) throw withDetails(signal.reason, details);
      if (notStarted !== undefined) throw withDetails(remoteError(this.url, 'cannot run ssh'), details);
      if (sending.failure !== undefined) throw withDetails(sending.failure, details);
      if (isSluiceError(error) || (error instanceof ProtocolError && !(isOver && failed(child)))) throw error;
      throw withDetails(remoteError(this.url, stderr()), details);
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
      await ended;
      this.#running.delete(child);
    }
  }

  #start(settings: readonly string[], { service }: Exchange<unknown>): ChildProcess {
    const { user, host, port, path } = this.#address;
    // No quote can be in the path; see readSshAddress.
    const command = `${service} '${path}'`;
    const child = spawn('ssh', [...settings, '-T', '-p', `${port}`, '-l', user, '--', host, command], {
      cwd: '/',
      env: {
        PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
        LC_ALL: 'C',
        ...(service === 'git-upload-pack' ? { GIT_PROTOCOL: 'version=2' } : {}),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#running.add(child);
    return child;
  }
}

/** The progress of sending a request. */
interface Sending {
  begun: boolean;
  /** The error that interrupted the creation of the body. */
  failure: unknown;
}

/** The server's output: its advertisement, or the answer that follows it. */
function answerOf(
  child: ChildProcess,
  { body, checkRefs }: Exchange<unknown>,
  sending: Sending,
): AsyncIterable<Uint8Array> {
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new SluiceError('Internal', 'ssh was started without pipes');
  // ssh may end before it has read everything; its exit code and output have the reason.
  stdin.on('error', () => undefined);
  if (body === undefined) {
    // Ends an exchange without a request.
    stdin.end(FLUSH);
    return stdout;
  }
  return afterAdvertisement(stdout, checkRefs !== undefined, (advertisement) => {
    checkRefs?.(advertisedRefs(advertisement));
    sending.begun = true;
    const data = body();
    if (data instanceof Uint8Array) return void stdin.end(data);
    const source = Readable.from(data, { objectMode: false });
    source.once('error', (error) => {
      sending.failure = error;
      child.kill('SIGKILL');
    });
    pipeline(source, stdin).catch(() => undefined);
  });
}

function failed({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== 0 || signalCode !== null;
}

function withDetails(error: unknown, details: RequestFailure): SluiceError {
  const code = isSluiceError(error) ? error.code : 'Unavailable';
  return new SluiceError(code, messageOf(error), { cause: error, details });
}
