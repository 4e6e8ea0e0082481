/** A question of the runner to a process that it started. */
export interface Question {
  readonly op: string;
}

type Answers = Readonly<Record<string, (question: never) => unknown>>;

/** Answers the runner's questions, those that `answers` has; ends this process by SIGTERM when the runner is gone. */
export function answerQuestions(answers: Answers): void {
  process.on("message", (question: Question) => {
    const answer = answers[question.op] as ((question: Question) => unknown) | undefined;
    if (answer === undefined) return;
    Promise.resolve(question)
      .then(answer)
      .then(
        (value) => process.send?.({ answer: value ?? null }),
        (error: unknown) => process.send?.({ error: error instanceof Error ? error.message : String(error) }),
      );
  });
  process.on("disconnect", () => process.kill(process.pid, "SIGTERM"));
}
