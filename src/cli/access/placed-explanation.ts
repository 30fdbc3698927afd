import type { Explanation } from '../../package/model/revision/explanation.ts';
import type { Invocation, PlaceOptions } from '../output/invocation.ts';
import { placedCommand } from './hints/command-for.ts';

/** Completes the commands of an explanation; `namespace` is that of the explained revision, by default that of the command line. */
export type PlaceExplanation = (explanation: Explanation, namespace?: string) => Explanation;

export interface PlaceExplanationOptions {
  readonly isServer?: boolean;
  /** True for a document. The commands in messages that are printed are completed when they are: see `Terminal.line`. */
  readonly isDocument: boolean;
}

/** Explanations whose commands can be copied, as commands of their own and in messages. */
export function placedExplanation(
  options: PlaceOptions,
  invocation: Invocation,
  { isServer = false, isDocument }: PlaceExplanationOptions,
): PlaceExplanation {
  const command = placedCommand(options, invocation, isServer);
  return (explanation, namespace) => {
    const place = (text: string) => command(text, namespace);
    const hints = (text: string) => (isDocument ? invocation.terminal.copyable(text, namespace) : text);
    const { gates, reasons, delivery, next, alternatives = [] } = explanation;
    return {
      ...explanation,
      gates: gates.map((gate) => ({
        ...gate,
        explanation: hints(gate.explanation),
        ...(gate.next === undefined ? {} : { next: place(gate.next) }),
      })),
      reasons: reasons.map((reason) => ({ ...reason, message: hints(reason.message) })),
      delivery: delivery.map((target) => ({ ...target, message: hints(target.message) })),
      next: next.map(place),
      alternatives: alternatives.map(place),
    };
  };
}
