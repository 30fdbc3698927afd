import { unlessMissing } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { type ApiService, apiServiceKind } from '../../resource/kinds/apiregistration/api-service.ts';
import { isConditionTrue } from '../../resource/object/condition.ts';

/** The time of the last request for a check, RFC 3339. Nothing reads it: the write itself is the request. */
const CHECK_ANNOTATION = 'sluice.dev/check-requested-at';

/** Milliseconds until the first request; each further one waits twice as long. */
const FIRST_DELAY_MS = 1000;
/** After this many the kube-apiserver is left to its own delay, which is no longer than theirs. */
const MAX_REQUESTS = 5;
/** Milliseconds without a request after which the delays begin from the first again. */
const QUIET_MS = 60_000;

export interface AvailabilityChecksOptions {
  /** May patch the APIService. */
  readonly client: Client;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/**
 * Requests checks of the server while its APIService is not Available. In that state the kube-apiserver refuses all requests for the API. It
 * repeats a failed check after 5 ms, with a delay that doubles up to 30 s
 * (pkg/controllers/status/remote/remote_available_controller.go of k8s.io/kube-aggregator), so that a replica which begins to serve after an
 * outage would get no request for up to half a minute. It also checks at each change of the Service, of its EndpointSlices and of the
 * APIService. The EndpointSlice changes with the leader, but before the nodes route connections to it, and it does not change where the
 * container of the leader is restarted in its pod. So the leader changes an annotation of its APIService 1, 3, 7, 15 and 31 s after it has
 * found it unavailable, as long as that is so.
 */
export class AvailabilityChecks {
  readonly #options: AvailabilityChecksOptions;
  #name: string | undefined;
  #cancel: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #requests = 0;
  #requestedMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  constructor(options: AvailabilityChecksOptions) {
    this.#options = options;
  }

  /** The present state of the APIService of this server, undefined where there is none. */
  note(apiService: ApiService | undefined): void {
    const isAvailable = isConditionTrue(apiService?.status?.conditions, 'Available');
    this.#name = isAvailable ? undefined : apiService?.metadata.name;
    if (this.#name !== undefined) this.#schedule();
    else {
      this.#cancel?.();
      this.#cancel = undefined;
    }
  }

  /** Resolves when nothing is written any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    await this.#running;
  }

  #schedule(): void {
    if (this.#isStopped || this.#cancel !== undefined || this.#running !== undefined) return;
    const { clock } = this.#options;
    if (clock.now() - this.#requestedMs >= QUIET_MS) this.#requests = 0;
    if (this.#requests === MAX_REQUESTS) return;
    this.#cancel = clock.schedule(FIRST_DELAY_MS * 2 ** this.#requests, () => {
      this.#cancel = undefined;
      this.#running = this.#request().finally(() => {
        this.#running = undefined;
        if (this.#name !== undefined) this.#schedule();
      });
    });
  }

  async #request(): Promise<void> {
    const { client, clock, onError } = this.#options;
    if (this.#name === undefined) return;
    this.#requests += 1;
    this.#requestedMs = clock.now();
    const annotations = { [CHECK_ANNOTATION]: new Date(this.#requestedMs).toISOString() };
    const written = client.patch(apiServiceKind, { name: this.#name }, { metadata: { annotations } });
    await unlessMissing(written).catch(onError);
  }
}
