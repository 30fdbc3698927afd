/**
 * The condition that Sluice computes of a revision with gates, for clients of Kubernetes: True while every gate is open for the current
 * content. It is shown on objects only. What clients write of it is ignored, and Git never has it.
 */
export const READY_TYPE = 'sluice.dev/Ready';
