import type { IncomingMessage } from 'node:http';

/**
 * Reports to the listener which requests come from a known sender. The listener knows connections and the filters know senders; neither
 * needs to know the other.
 */
const listeners = new WeakMap<object, () => void>();

/** Calls `listener` when the sender of the request is known. */
export function onAuthenticated(request: object, listener: () => void): void {
  listeners.set(request, listener);
}

/** Called when credentials have proved who sent the request. */
export function reportAuthenticated(request: IncomingMessage): void {
  listeners.get(request)?.();
}
