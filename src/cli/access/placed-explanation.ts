import type { Explanation } from '../../package/model/revision/explanation.ts';

/** An explanation whose commands `place` has completed. */
export function placedExplanation(explanation: Explanation, place: (command: string) => string): Explanation {
  const gates = explanation.gates.map((gate) => (gate.next === undefined ? gate : { ...gate, next: place(gate.next) }));
  const { next, alternatives = [] } = explanation;
  return { ...explanation, gates, next: next.map(place), alternatives: alternatives.map(place) };
}
