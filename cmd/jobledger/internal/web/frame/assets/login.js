// Takes the code from behind the # of the link, removes it from the address, and sends the form.
const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, "", location.pathname);
  const form = document.getElementById("login");
  form.elements.code.value = code;
  form.requestSubmit();
}
