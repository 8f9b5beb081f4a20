// One session of any client: list the tools, make the calls of the plan, print
// what came back as JSON. The plan is the first argument of the program:
// {url} or {command, args, cwd}, and calls: [{name, arguments}].
export const plan = JSON.parse(process.argv[2]);

export async function run(client, transport, revision) {
  await client.connect(transport);
  const { tools } = await client.listTools();
  const answers = [];
  for (const call of plan.calls) {
    try {
      const { content, isError, structuredContent } = await client.callTool(call);
      answers.push({ content, isError: isError || undefined, structuredContent });
    } catch (error) {
      if (typeof error.code !== "number") throw error;
      answers.push({ error: { code: error.code } });
    }
  }
  const server = client.getServerVersion()?.name;
  console.log(JSON.stringify({ revision: revision(), server, tools, answers }));
  await client.close();
}
