import { channel } from 'node:diagnostics_channel';

/** A measurement that is published to subscribers; costs almost nothing without any. */
export interface Measurement<T> {
  readonly hasSubscribers: boolean;
  publish(value: T): void;
  /** Returns what ends the subscription. */
  subscribe(listener: (value: T) => void): () => void;
}

/** `name` is that of a diagnostics channel of Node.js, so tools can listen too. */
export function measurement<T>(name: string): Measurement<T> {
  const wire = channel(name);
  return {
    get hasSubscribers() {
      return wire.hasSubscribers;
    },
    publish: (value) => wire.publish(value),
    subscribe(listener) {
      const receive = (value: unknown) => listener(value as T);
      wire.subscribe(receive);
      return () => wire.unsubscribe(receive);
    },
  };
}

/** Runs work and publishes how many milliseconds it took, whether it succeeds or fails. */
export async function timed<Result>(
  measured: Measurement<{ readonly operation: string; readonly milliseconds: number }>,
  operation: string,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!measured.hasSubscribers) return work();
  const start = performance.now();
  try {
    return await work();
  } finally {
    measured.publish({ operation, milliseconds: performance.now() - start });
  }
}
