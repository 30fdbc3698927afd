import { SluiceError } from '../../foundation/sluice-error.ts';
import type { ExternalAnswer, ExternalCall, ExternalRunner } from '../external/external-runner.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/** In a worker: has functions outside of it run by the process that started it. */
export class AskingRunner implements ExternalRunner {
  readonly #send: (message: FromWorker) => void;
  readonly #open = new Map<number, PromiseWithResolvers<never>>();
  #questions = 0;

  constructor(send: (message: FromWorker) => void) {
    this.#send = send;
  }

  refusal({ image, exec }: Omit<ExternalCall, 'input'>): Promise<string | undefined> {
    const call = { ...(image === undefined ? {} : { image }), ...(exec === undefined ? {} : { exec }) };
    return this.#ask((question) => ({ type: 'refusal', question, call }));
  }

  /** The other side stops what runs when it ends this process, so the signal has nothing to do. */
  run(call: ExternalCall): Promise<ExternalAnswer> {
    return this.#ask((question) => ({ type: 'external', question, call }));
  }

  /** Takes an answer of the other side. */
  take(message: Extract<ToWorker, { readonly question: number }>): void {
    const asked = this.#open.get(message.question);
    this.#open.delete(message.question);
    if (message.type === 'answer') asked?.resolve(message.answer as never);
    else asked?.reject(new SluiceError(message.error.code, message.error.message));
  }

  #ask<Answer>(message: (question: number) => FromWorker): Promise<Answer> {
    this.#questions += 1;
    const asked = Promise.withResolvers<never>();
    this.#open.set(this.#questions, asked);
    this.#send(message(this.#questions));
    return asked.promise;
  }
}
