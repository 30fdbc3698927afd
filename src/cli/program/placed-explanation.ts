import type { Explanation } from '../../package/model/revision/explanation.ts';

/** An explanation whose commands `place` has completed. */
export function placedExplanation(explanation: Explanation, place: (command: string) => string): Explanation {
  const gates = explanation.gates.map((gate) => (gate.next === undefined ? gate : { ...gate, next: place(gate.next) }));
  return { ...explanation, gates, next: explanation.next.map((command) => place(command)) };
}
